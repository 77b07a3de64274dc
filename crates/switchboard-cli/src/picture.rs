//! Images in the terminal: inline where it can show them, else saved to a file.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::environment::{self, Graphics};
use crate::{sixel, terminal};

/// Larger images are saved, not shown.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// Height of an inline image, in rows.
const ROWS: usize = 12;
/// Length of a piece of data in kitty's protocol.
const CHUNK: usize = 4096;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Whether the terminal has said that it shows sixel graphics.
static SHOWS_SIXEL: AtomicBool = AtomicBool::new(false);

/// Records what the terminal has answered.
#[cfg(unix)]
pub(crate) fn set_sixel(is_shown: bool) {
    SHOWS_SIXEL.store(is_shown, Ordering::Relaxed);
}

/// How the terminal shows images; `None` if it does not.
pub(crate) fn graphics() -> Option<Graphics> {
    let asked = || SHOWS_SIXEL.load(Ordering::Relaxed);
    environment::graphics().or_else(|| asked().then_some(Graphics::Sixel))
}

/// The sequence that shows an image, with a line break; `None` if the terminal cannot show it.
pub(crate) fn inline(bytes: &[u8], graphics: Option<Graphics>) -> Option<String> {
    if bytes.len() > MAX_BYTES {
        return None;
    }
    let graphics = graphics?;
    if graphics == Graphics::Sixel {
        return Some(sixel::encode(bytes, terminal::pixels_of(ROWS))? + "\n");
    }
    // Encoded here, so that the data cannot end the sequence.
    let data = STANDARD.encode(bytes);
    match graphics {
        // kitty takes no other format without decoding it.
        Graphics::Kitty if bytes.starts_with(PNG) => {
            let mut text = String::new();
            let mut rest = data.as_str();
            let mut keys = format!("a=T,f=100,r={ROWS},");
            while !rest.is_empty() {
                let (piece, more) = rest.split_at(CHUNK.min(rest.len()));
                let is_more = u8::from(!more.is_empty());
                let _ = write!(text, "\u{1b}_G{keys}q=2,m={is_more};{piece}\u{1b}\\");
                keys.clear();
                rest = more;
            }
            Some(text + "\n")
        }
        Graphics::Kitty | Graphics::Sixel => None,
        Graphics::Iterm => Some(format!(
            "\u{1b}]1337;File=inline=1;height={ROWS};preserveAspectRatio=1;size={}:{data}\u{7}\n",
            bytes.len()
        )),
    }
}

/// The usual extension of an image's type.
pub(crate) fn extension(mime_type: &str) -> &'static str {
    match mime_type {
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/png" => "png",
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_sent_in_the_terminals_own_way() {
        let png = [PNG, &[0; 5000]].concat();
        let kitty = inline(&png, Some(Graphics::Kitty)).unwrap();
        assert!(
            kitty.starts_with("\u{1b}_Ga=T,f=100,r=12,q=2,m=1;iVBOR"),
            "{kitty:.60}"
        );
        assert!(kitty.ends_with("\u{1b}\\\n"));
        assert_eq!(kitty.matches("\u{1b}_G").count(), 2);
        let iterm = inline(b"GIF89a", Some(Graphics::Iterm)).unwrap();
        assert!(iterm.contains("size=6:R0lGODlh\u{7}"), "{iterm}");
        // Nothing is sent that the terminal cannot show.
        assert_eq!(inline(b"GIF89a", Some(Graphics::Kitty)), None);
        assert_eq!(inline(b"GIF89a", Some(Graphics::Sixel)), None);
        assert_eq!(inline(&png, None), None);
        assert_eq!(inline(&vec![0; MAX_BYTES + 1], Some(Graphics::Iterm)), None);
    }
}
