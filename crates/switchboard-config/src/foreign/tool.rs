//! Tools whose configuration can be imported and exported.

use std::fmt;

/// A tool with MCP servers in its configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each variant is the tool of that name")]
pub enum Tool {
    ClaudeCode,
    ClaudeDesktop,
    Codex,
    VsCode,
    Cursor,
    Gemini,
    Zed,
    Opencode,
    Goose,
    Windsurf,
    Kiro,
    LmStudio,
    Continue,
    Crush,
    AmazonQ,
}

impl Tool {
    /// All tools.
    pub const ALL: [Tool; 15] = [
        Tool::ClaudeCode,
        Tool::ClaudeDesktop,
        Tool::Codex,
        Tool::VsCode,
        Tool::Cursor,
        Tool::Gemini,
        Tool::Zed,
        Tool::Opencode,
        Tool::Goose,
        Tool::Windsurf,
        Tool::Kiro,
        Tool::LmStudio,
        Tool::Continue,
        Tool::Crush,
        Tool::AmazonQ,
    ];

    /// Name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Tool::ClaudeCode => "claude-code",
            Tool::ClaudeDesktop => "claude-desktop",
            Tool::Codex => "codex",
            Tool::VsCode => "vscode",
            Tool::Cursor => "cursor",
            Tool::Gemini => "gemini",
            Tool::Zed => "zed",
            Tool::Opencode => "opencode",
            Tool::Goose => "goose",
            Tool::Windsurf => "windsurf",
            Tool::Kiro => "kiro",
            Tool::LmStudio => "lm-studio",
            Tool::Continue => "continue",
            Tool::Crush => "crush",
            Tool::AmazonQ => "amazon-q",
        }
    }

    /// Product name.
    pub const fn title(self) -> &'static str {
        match self {
            Tool::ClaudeCode => "Claude Code",
            Tool::ClaudeDesktop => "Claude Desktop",
            Tool::Codex => "Codex",
            Tool::VsCode => "VS Code",
            Tool::Cursor => "Cursor",
            Tool::Gemini => "Gemini CLI",
            Tool::Zed => "Zed",
            Tool::Opencode => "opencode",
            Tool::Goose => "goose",
            Tool::Windsurf => "Windsurf",
            Tool::Kiro => "Kiro",
            Tool::LmStudio => "LM Studio",
            Tool::Continue => "Continue",
            Tool::Crush => "Crush",
            Tool::AmazonQ => "Amazon Q",
        }
    }

    /// Parses a name, ignoring case and separators; accepts common aliases.
    pub fn from_name(name: &str) -> Option<Self> {
        let plain = |name: &str| -> String {
            name.chars()
                .filter(char::is_ascii_alphanumeric)
                .map(|character| character.to_ascii_lowercase())
                .collect()
        };
        let name = plain(name);
        let known = |tool: &Tool| plain(tool.name()) == name || plain(tool.title()) == name;
        Self::ALL.into_iter().find(known).or(match name.as_str() {
            "claude" => Some(Tool::ClaudeCode),
            "codexcli" | "openaicodex" => Some(Tool::Codex),
            "code" | "copilot" | "githubcopilot" | "visualstudiocode" => Some(Tool::VsCode),
            "q" | "amazonqcli" | "amazonqdeveloper" | "qcli" => Some(Tool::AmazonQ),
            "codeium" | "cascade" => Some(Tool::Windsurf),
            "continuedev" => Some(Tool::Continue),
            "kirocli" => Some(Tool::Kiro),
            _ => None,
        })
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.title())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_found_by_any_of_its_names() {
        for tool in Tool::ALL {
            assert_eq!(Tool::from_name(tool.name()), Some(tool));
            assert_eq!(Tool::from_name(tool.title()), Some(tool));
        }
        assert_eq!(Tool::from_name("Claude_Code"), Some(Tool::ClaudeCode));
        assert_eq!(Tool::from_name("claude"), Some(Tool::ClaudeCode));
        assert_eq!(Tool::from_name("VSCode"), Some(Tool::VsCode));
        assert_eq!(Tool::from_name("lmstudio"), Some(Tool::LmStudio));
        assert_eq!(Tool::from_name("gemini-cli"), Some(Tool::Gemini));
        assert_eq!(Tool::from_name("emacs"), None);
        assert_eq!(Tool::from_name(""), None);
    }
}
