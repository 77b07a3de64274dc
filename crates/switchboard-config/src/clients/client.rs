//! Finds the tools on this machine by their files and folders.

use std::path::PathBuf;

use crate::files::Files;
use crate::foreign::{ForeignFile, Places, Reach, Tool};
use crate::format::Format;

/// A tool that can use Switchboard, and its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// The tool.
    pub tool: Tool,
    /// The file of the user that gets the entry. May not exist.
    pub path: PathBuf,
    /// Syntax of the file.
    pub format: Format,
    /// Whether the tool has a file or a folder on this machine.
    pub is_found: bool,
    /// A file that the tool would no longer read if `path` were created.
    pub replaces: Option<PathBuf>,
}

impl Client {
    /// Looks for a tool.
    pub fn find(tool: Tool, places: &Places<'_>, files: &impl Files) -> Self {
        let of_user: Vec<ForeignFile> = tool
            .files(places)
            .into_iter()
            .filter(|file| file.reach == Reach::User && !file.is_folder)
            .collect();
        let exists = |file: &&ForeignFile| files.exists(&file.path);
        let first = of_user.first();
        // These tools read alternative files; of the others, only the first is meant for servers.
        let existing = match tool {
            Tool::Opencode | Tool::Windsurf => of_user.iter().find(exists),
            _ => None,
        };
        let (path, format) = match existing.or(first) {
            Some(file) => (file.path.clone(), file.format),
            None => (PathBuf::new(), Format::Json),
        };
        let folder = folder(tool, places, &path);
        let is_found = files.exists(&path)
            || folder.is_some_and(|folder| files.is_folder(&folder))
            || of_user.iter().any(|file| files.exists(&file.path));
        // Continue reads its older file only as long as the newer one does not exist.
        let older = path.with_file_name("config.json");
        let replaces = (tool == Tool::Continue && !files.exists(&path) && files.exists(&older))
            .then_some(older);
        Self {
            tool,
            path,
            format,
            is_found,
            replaces,
        }
    }
}

/// A folder that only exists if the tool was used on this machine.
fn folder(tool: Tool, places: &Places<'_>, path: &std::path::Path) -> Option<PathBuf> {
    let home = |name: &str| Some(places.home.join(name));
    match tool {
        // Its file is in the home folder itself.
        Tool::ClaudeCode => home(".claude"),
        Tool::Kiro => home(".kiro"),
        _ => path.parent().map(PathBuf::from),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::files::Disk;
    use crate::foreign::Platform;

    fn check(existing: &[&str], tool: Tool, is_found: bool, expected: &str) {
        let root = tempfile::tempdir().unwrap();
        for path in existing {
            let path = root.path().join(path);
            if path.extension().is_some() {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(&path, "").unwrap();
            } else {
                std::fs::create_dir_all(&path).unwrap();
            }
        }
        let places = Places {
            home: root.path(),
            project: Path::new("/project"),
            config_home: None,
            app_data: None,
            local_app_data: None,
            codex_home: None,
            platform: Platform::Linux,
        };
        let client = Client::find(tool, &places, &Disk);
        let shown = client.path.strip_prefix(root.path()).unwrap();
        assert_eq!(
            (shown, client.is_found),
            (Path::new(expected), is_found),
            "{existing:?}"
        );
    }

    #[test]
    fn a_client_is_found_by_its_file_or_its_folder() {
        check(&[], Tool::ClaudeCode, false, ".claude.json");
        check(&[".claude/x"], Tool::ClaudeCode, true, ".claude.json");
        check(&[".claude.json"], Tool::ClaudeCode, true, ".claude.json");
        check(
            &[".config/Code/User/settings.json"],
            Tool::VsCode,
            true,
            ".config/Code/User/mcp.json",
        );
        check(
            &[".config/opencode/opencode.jsonc"],
            Tool::Opencode,
            true,
            ".config/opencode/opencode.jsonc",
        );
        check(
            &[".config/opencode/x"],
            Tool::Opencode,
            true,
            ".config/opencode/opencode.json",
        );
        check(
            &[".codeium/mcp_config.json"],
            Tool::Windsurf,
            true,
            ".codeium/mcp_config.json",
        );
        check(&[".kiro/x"], Tool::Kiro, true, ".kiro/settings/mcp.json");
        check(&[".aws/x"], Tool::AmazonQ, false, ".aws/amazonq/mcp.json");
    }
}
