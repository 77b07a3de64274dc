//! Colours for the background of the terminal. A theme replaces the styles that the program uses everywhere.

use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};

use anstyle::{Ansi256Color, AnsiColor, Color, Effects, Style};

use crate::environment;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Theme {
    Dark,
    Light,
    HighContrast,
    None,
}

/// The names of the themes, and descriptions.
pub(crate) const NAMES: [(&str, &str); 4] = [
    ("dark", "for a dark background"),
    ("light", "for a light background"),
    ("high-contrast", "bright colours, nothing dimmed"),
    ("none", "no colours"),
];

const THEMES: [Theme; 4] = [Theme::Dark, Theme::Light, Theme::HighContrast, Theme::None];

/// The index of the theme. Global, like the terminal.
static CURRENT: AtomicU8 = AtomicU8::new(0);

impl Theme {
    /// Finds a theme by its name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let index = NAMES.iter().position(|(known, _)| *known == name)?;
        THEMES.get(index).copied()
    }

    pub(crate) fn name(self) -> &'static str {
        let index = THEMES.iter().position(|theme| *theme == self);
        let entry = index.and_then(|index| NAMES.get(index));
        entry.map_or("dark", |(name, _)| name)
    }

    pub(crate) fn current() -> Self {
        let index = usize::from(CURRENT.load(Ordering::Relaxed));
        THEMES.get(index).copied().unwrap_or(Self::Dark)
    }

    pub(crate) fn set(self) {
        let index = THEMES.iter().position(|theme| *theme == self);
        let index = index.and_then(|index| u8::try_from(index).ok());
        CURRENT.store(index.unwrap_or_default(), Ordering::Relaxed);
    }

    /// The style in this theme.
    pub(crate) fn of(self, style: Style) -> Style {
        match self {
            Self::Dark => style,
            Self::None => Style::new(),
            Self::Light => {
                let color = match style.get_fg_color() {
                    Some(Color::Ansi(AnsiColor::Yellow)) => Some(130),
                    Some(Color::Ansi(AnsiColor::Cyan)) => Some(25),
                    Some(Color::Ansi(AnsiColor::Green)) => Some(28),
                    Some(Color::Ansi(AnsiColor::Red)) => Some(124),
                    Some(Color::Ansi(AnsiColor::Magenta)) => Some(90),
                    Some(Color::Ansi(AnsiColor::Blue)) => Some(19),
                    // Dimmed text is hard to read on white.
                    None if style.get_effects().contains(Effects::DIMMED) => Some(240),
                    _ => return style,
                };
                let color = color.map(|index| Color::Ansi256(Ansi256Color(index)));
                let effects = style.get_effects() - Effects::DIMMED;
                Style::new().fg_color(color).effects(effects)
            }
            Self::HighContrast => {
                let effects = style.get_effects() - Effects::DIMMED;
                let color = match style.get_fg_color() {
                    Some(Color::Ansi(color)) => Some(Color::Ansi(color.bright(true))),
                    other => other,
                };
                let effects = if color.is_some() {
                    effects | Effects::BOLD
                } else {
                    effects
                };
                Style::new().fg_color(color).effects(effects)
            }
        }
    }
}

/// Uses the theme named in a file; without one, that for the background that the terminal reports.
pub(crate) fn load(file: &Path) {
    let name = std::fs::read_to_string(file).unwrap_or_default();
    let chosen = Theme::named(name.trim());
    let fitting = || environment::is_light().then_some(Theme::Light);
    if let Some(theme) = chosen.or_else(fitting) {
        theme.set();
    }
}

/// Writes the name of a theme to a file.
pub(crate) fn save(file: &Path, name: &str) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        switchboard_config::write::create_private_folder(folder)?;
    }
    std::fs::write(file, format!("{name}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printer::style;

    #[test]
    fn themes_replace_what_cannot_be_read() {
        assert_eq!(Theme::Dark.of(style::WARNING), style::WARNING);
        assert_eq!(Theme::None.of(style::ERROR), Style::new());
        let light = Theme::Light.of(style::WARNING);
        assert_eq!(light.get_fg_color(), Some(Ansi256Color(130).into()));
        assert!(light.get_effects().contains(Effects::BOLD));
        for theme in [Theme::Light, Theme::HighContrast] {
            let quiet = theme.of(style::QUIET);
            assert!(!quiet.get_effects().contains(Effects::DIMMED), "{theme:?}");
        }
        for (name, _) in NAMES {
            assert_eq!(Theme::named(name).map(Theme::name), Some(name));
        }
        assert_eq!(Theme::named("pink"), None);
    }
}
