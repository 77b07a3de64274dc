//! Counts of listed, offered and hidden tools of a server, shared by all front ends.

use std::fmt;

use super::server::{SetAside, SetAsideReason};

/// Number of tools that a server lists, by status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ToolCount {
    /// Tools available to models.
    pub offered: usize,
    /// Tools that are unusable or wait for approval.
    pub set_aside: usize,
    /// Tools excluded by the server's entry: `enabled_tools`, `disabled_tools`, `tools.NAME.hidden`.
    pub hidden: usize,
}

impl ToolCount {
    pub(super) fn of<'a>(
        offered: usize,
        aside: impl Iterator<Item = &'a SetAside>,
        untold: usize,
    ) -> Self {
        let mut count = Self {
            offered,
            set_aside: untold,
            hidden: 0,
        };
        for aside in aside {
            match aside.reason {
                SetAsideReason::Disabled | SetAsideReason::NotEnabled | SetAsideReason::Hidden => {
                    count.hidden += 1;
                }
                _ => count.set_aside += 1,
            }
        }
        count
    }

    /// Describes the tools that are not offered, such as `2 set aside, 1 hidden by its entry`; `None` if all are.
    pub fn rest(&self) -> Option<String> {
        let parts = [
            (self.set_aside, "set aside"),
            (self.hidden, "hidden by its entry"),
        ];
        let parts = parts.iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// Formats as `12 tools (2 set aside, 1 hidden by its entry)`.
impl fmt::Display for ToolCount {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.offered == 1 { "" } else { "s" };
        write!(formatter, "{} tool{plural}", self.offered)?;
        match self.rest() {
            Some(rest) => write!(formatter, " ({rest})"),
            None => Ok(()),
        }
    }
}
