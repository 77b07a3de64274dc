//! Locations of each tool's files, per platform.
//!
//! Pure: folders are passed in, and the caller checks whether a file exists.

use std::path::{Path, PathBuf};

use super::Tool;
use crate::format::Format;

/// Operating systems that the tools distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each variant is the system of that name")]
pub enum Platform {
    Linux,
    MacOs,
    Windows,
}

/// Base folders.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// Home folder of the user.
    pub home: &'a Path,
    /// Project folder.
    pub project: &'a Path,
    /// `XDG_CONFIG_HOME`, if set.
    pub config_home: Option<&'a Path>,
    /// `APPDATA`, set on Windows.
    pub app_data: Option<&'a Path>,
    /// `LOCALAPPDATA`, set on Windows.
    pub local_app_data: Option<&'a Path>,
    /// `CODEX_HOME`, if set.
    pub codex_home: Option<&'a Path>,
    /// Decides the layout of the folders.
    pub platform: Platform,
}

/// Audience of a file's servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reach {
    /// One user, in every project.
    User,
    /// All users of the project.
    Project,
    /// One user, in one project.
    Local,
}

/// A file that a tool reads, or a folder of such files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignFile {
    /// May not exist.
    pub path: PathBuf,
    /// Syntax of the file, or of the files in the folder.
    pub format: Format,
    /// Audience of its servers.
    pub reach: Reach,
    /// Whether the path is a folder: all files of the format directly in it count.
    pub is_folder: bool,
}

impl Tool {
    /// Files that the tool reads servers from, those of the user first. Exports use the first one with the wanted
    /// reach.
    pub fn files(self, places: &Places<'_>) -> Vec<ForeignFile> {
        use Format::{Json, Toml, Yaml};
        use Reach::{Local, Project, User};
        let home = |path: &str| places.home.join(path);
        let project = |path: &str| places.project.join(path);
        match self {
            Tool::ClaudeCode => vec![
                file(home(".claude.json"), Json, User),
                file(home(".claude/settings.json"), Json, User),
                file(project(".mcp.json"), Json, Project),
                file(project(".claude/settings.json"), Json, Project),
                file(project(".claude/settings.local.json"), Json, Local),
            ],
            Tool::ClaudeDesktop => vec![file(
                places
                    .application("Claude")
                    .join("claude_desktop_config.json"),
                Json,
                User,
            )],
            Tool::Codex => {
                let folder = places
                    .codex_home
                    .map_or_else(|| home(".codex"), PathBuf::from);
                vec![
                    file(folder.join("config.toml"), Toml, User),
                    file(project(".codex/config.toml"), Toml, Project),
                ]
            }
            Tool::VsCode => {
                let user = places.application("Code").join("User");
                vec![
                    file(user.join("mcp.json"), Json, User),
                    file(user.join("settings.json"), Json, User),
                    file(project(".vscode/mcp.json"), Json, Project),
                    file(project(".vscode/settings.json"), Json, Project),
                    file(project(".devcontainer/devcontainer.json"), Json, Project),
                ]
            }
            Tool::Cursor => vec![
                file(home(".cursor/mcp.json"), Json, User),
                file(project(".cursor/mcp.json"), Json, Project),
            ],
            Tool::Gemini => vec![
                file(home(".gemini/settings.json"), Json, User),
                file(project(".gemini/settings.json"), Json, Project),
            ],
            Tool::Zed => {
                let folder = match places.platform {
                    Platform::Windows => places.roaming().join("Zed"),
                    // Zed uses ~/.config on macOS too, and XDG only on Linux.
                    Platform::MacOs => home(".config/zed"),
                    Platform::Linux => places.config().join("zed"),
                };
                vec![
                    file(folder.join("settings.json"), Json, User),
                    file(project(".zed/settings.json"), Json, Project),
                ]
            }
            Tool::Opencode => {
                let user = places.config().join("opencode");
                let both = |folder: PathBuf, reach| {
                    ["opencode.json", "opencode.jsonc"]
                        .map(|name| file(folder.join(name), Json, reach))
                };
                [
                    both(user, User),
                    both(places.project.to_path_buf(), Project),
                    both(project(".opencode"), Project),
                ]
                .into_iter()
                .flatten()
                .collect()
            }
            Tool::Goose => {
                let folder = match places.platform {
                    Platform::Windows => places.roaming().join("Block/goose/config"),
                    _ => places.config().join("goose"),
                };
                vec![file(folder.join("config.yaml"), Yaml, User)]
            }
            Tool::Windsurf => vec![
                file(home(".codeium/windsurf/mcp_config.json"), Json, User),
                file(home(".codeium/mcp_config.json"), Json, User),
            ],
            Tool::Kiro => vec![
                file(home(".kiro/settings/mcp.json"), Json, User),
                folder(home(".kiro/agents"), Json, User),
                file(project(".kiro/settings/mcp.json"), Json, Project),
                folder(project(".kiro/agents"), Json, Project),
            ],
            Tool::LmStudio => vec![file(home(".lmstudio/mcp.json"), Json, User)],
            Tool::Continue => vec![
                file(home(".continue/config.yaml"), Yaml, User),
                folder(home(".continue/mcpServers"), Yaml, User),
                folder(home(".continue/mcpServers"), Json, User),
                folder(project(".continue/mcpServers"), Yaml, Project),
                folder(project(".continue/mcpServers"), Json, Project),
            ],
            Tool::Crush => {
                let user = match places.platform {
                    Platform::Windows => places.local().join("crush"),
                    _ => places.config().join("crush"),
                };
                vec![
                    file(user.join("crush.json"), Json, User),
                    file(project(".crush.json"), Json, Project),
                    file(project("crush.json"), Json, Project),
                ]
            }
            Tool::AmazonQ => vec![
                file(home(".aws/amazonq/mcp.json"), Json, User),
                folder(home(".aws/amazonq/cli-agents"), Json, User),
                file(project(".amazonq/mcp.json"), Json, Project),
                folder(project(".amazonq/cli-agents"), Json, Project),
            ],
        }
    }
}

impl Places<'_> {
    /// `XDG_CONFIG_HOME` or `~/.config`, which some tools use on every system.
    fn config(&self) -> PathBuf {
        self.config_home
            .map_or_else(|| self.home.join(".config"), PathBuf::from)
    }

    fn roaming(&self) -> PathBuf {
        self.app_data
            .map_or_else(|| self.home.join("AppData/Roaming"), PathBuf::from)
    }

    fn local(&self) -> PathBuf {
        self.local_app_data
            .map_or_else(|| self.home.join("AppData/Local"), PathBuf::from)
    }

    /// Settings folder of a desktop application.
    fn application(&self, name: &str) -> PathBuf {
        match self.platform {
            Platform::Linux => self.config().join(name),
            Platform::MacOs => self.home.join("Library/Application Support").join(name),
            Platform::Windows => self.roaming().join(name),
        }
    }
}

fn file(path: PathBuf, format: Format, reach: Reach) -> ForeignFile {
    ForeignFile {
        path,
        format,
        reach,
        is_folder: false,
    }
}

fn folder(path: PathBuf, format: Format, reach: Reach) -> ForeignFile {
    ForeignFile {
        is_folder: true,
        ..file(path, format, reach)
    }
}
