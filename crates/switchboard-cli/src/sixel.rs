//! Encodes PNG images as sixel graphics. Other formats are not decoded: they would cost more than they are worth in the
//! size of the program.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Cursor;

use crate::terminal::Pixels;

/// Larger images are not decoded.
const MAX_PIXELS: usize = 8 * 1024 * 1024;
/// Colours that every terminal with sixel graphics has.
const MAX_COLORS: usize = 256;
/// Steps of red, green and blue in the palette of an image with more colours.
const STEPS: [u32; 3] = [6, 7, 6];
/// Thresholds of ordered dithering, in sixteenths.
const THRESHOLDS: [[u32; 4]; 4] = [[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]];

/// Red, green, blue and opacity.
type Color = [u8; 4];

struct Image {
    width: usize,
    height: usize,
    pixels: Vec<Color>,
}

/// The sequence that draws a PNG image, made smaller if it exceeds `most`; `None` if it cannot be decoded.
pub(crate) fn encode(png: &[u8], most: Pixels) -> Option<String> {
    Some(decode(png)?.within(most).encode())
}

fn decode(bytes: &[u8]) -> Option<Image> {
    let mut decoder = png::Decoder::new(Cursor::new(bytes));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().ok()?;
    let (width, height) = (reader.info().width as usize, reader.info().height as usize);
    if width.checked_mul(height)? > MAX_PIXELS {
        return None;
    }
    let mut buffer = vec![0; reader.output_buffer_size()?];
    let frame = reader.next_frame(&mut buffer).ok()?;
    let samples = frame.color_type.samples();
    let pixel = |samples: &[u8]| match *samples {
        [gray] => Some([gray, gray, gray, 255]),
        [gray, opacity] => Some([gray, gray, gray, opacity]),
        [red, green, blue] => Some([red, green, blue, 255]),
        [red, green, blue, opacity] => Some([red, green, blue, opacity]),
        _ => None,
    };
    let pixels: Option<Vec<Color>> = buffer
        .get(..frame.buffer_size())?
        .chunks_exact(samples)
        .map(pixel)
        .collect();
    Some(Image {
        width,
        height,
        pixels: pixels.filter(|pixels| pixels.len() == width * height && !pixels.is_empty())?,
    })
}

impl Image {
    /// The image in a size that fits, with the same proportions. Every pixel is the mean of those it replaces.
    fn within(self, most: Pixels) -> Self {
        let (columns, rows) = (most.width.max(1), most.height.max(1));
        if self.width <= columns && self.height <= rows {
            return self;
        }
        let (width, height) = if self.width * rows > self.height * columns {
            (columns, (self.height * columns / self.width).max(1))
        } else {
            ((self.width * rows / self.height).max(1), rows)
        };
        let span = |place: usize, new: usize, old: usize| {
            let start = place * old / new;
            start..((place + 1) * old / new).max(start + 1)
        };
        let mut pixels = Vec::with_capacity(width * height);
        for row in 0..height {
            for column in 0..width {
                let mut sum = [0_u64; 4];
                let mut count = 0;
                for y in span(row, height, self.height) {
                    for x in span(column, width, self.width) {
                        let pixel = self.pixel(x, y);
                        sum.iter_mut()
                            .zip(pixel)
                            .for_each(|(sum, part)| *sum += u64::from(part));
                        count += 1;
                    }
                }
                let mean = |sum: u64| u8::try_from(sum / count.max(1)).unwrap_or(u8::MAX);
                pixels.push(sum.map(mean));
            }
        }
        Self {
            width,
            height,
            pixels,
        }
    }

    fn pixel(&self, x: usize, y: usize) -> Color {
        self.pixels
            .get(y * self.width + x)
            .copied()
            .unwrap_or_default()
    }

    /// The sequence that draws the image. Transparent pixels keep the colour of the terminal.
    fn encode(&self) -> String {
        let (palette, indices) = self.indexed();
        let mut text = format!("\u{1b}P0;1q\"1;1;{};{}", self.width, self.height);
        for (number, color) in palette.iter().enumerate() {
            let [red, green, blue] = color.map(|part| (u32::from(part) * 100 + 127) / 255);
            let _ = write!(text, "#{number};2;{red};{green};{blue}");
        }
        // A band is six rows high. It is drawn once for each colour that it has.
        for band in indices.chunks(self.width * 6) {
            let mut bits: HashMap<u8, Vec<u8>> = HashMap::new();
            for (place, index) in band.iter().enumerate() {
                if let Some(index) = index {
                    let bits = bits.entry(*index).or_insert_with(|| vec![0; self.width]);
                    if let Some(bits) = bits.get_mut(place % self.width) {
                        *bits |= 1 << (place / self.width);
                    }
                }
            }
            let mut colors: Vec<_> = bits.into_iter().collect();
            colors.sort_unstable_by_key(|(index, _)| *index);
            for (place, (index, bits)) in colors.iter().enumerate() {
                let back = if place > 0 { "$" } else { "" };
                let _ = write!(text, "{back}#{index}");
                push_runs(&mut text, bits);
            }
            text.push('-');
        }
        text.push_str("\u{1b}\\");
        text
    }

    /// The palette, and each pixel's place in it; `None` for a transparent one.
    fn indexed(&self) -> (Vec<[u8; 3]>, Vec<Option<u8>>) {
        let visible = |color: &Color| color[3] >= 128;
        let opaque = |[red, green, blue, _]: Color| [red, green, blue];
        let mut places: HashMap<[u8; 3], u8> = HashMap::new();
        let mut palette = Vec::new();
        for color in self.pixels.iter().filter(|color| visible(color)) {
            let color = opaque(*color);
            if places.contains_key(&color) {
                continue;
            }
            let Some(place) = u8::try_from(palette.len())
                .ok()
                .filter(|_| palette.len() < MAX_COLORS)
            else {
                return self.dithered();
            };
            places.insert(color, place);
            palette.push(color);
        }
        let index = |color: &Color| {
            places
                .get(&opaque(*color))
                .copied()
                .filter(|_| visible(color))
        };
        (palette, self.pixels.iter().map(index).collect())
    }

    /// The image in a fixed palette, with patterns in place of the colours between.
    fn dithered(&self) -> (Vec<[u8; 3]>, Vec<Option<u8>>) {
        let [reds, greens, blues] = STEPS;
        let level =
            |step: u32, steps: u32| u8::try_from(step * 255 / (steps - 1)).unwrap_or(u8::MAX);
        let mut palette = Vec::new();
        for red in 0..reds {
            for green in 0..greens {
                for blue in 0..blues {
                    palette.push([level(red, reds), level(green, greens), level(blue, blues)]);
                }
            }
        }
        let index = |(place, color): (usize, &Color)| {
            let (x, y) = (place % self.width, place / self.width);
            let threshold = THRESHOLDS[y % 4][x % 4];
            let step = |part: u8, steps: u32| {
                (u32::from(part) * (steps - 1) * 16 + threshold * 255) / (255 * 16)
            };
            let [red, green, blue, opacity] = *color;
            let place =
                (step(red, reds) * greens + step(green, greens)) * blues + step(blue, blues);
            u8::try_from(place).ok().filter(|_| opacity >= 128)
        };
        (palette, self.pixels.iter().enumerate().map(index).collect())
    }
}

/// Adds one row of sixels, with repetitions counted.
fn push_runs(text: &mut String, bits: &[u8]) {
    for run in bits.chunk_by(|one, other| one == other) {
        let sixel = char::from(run.first().copied().unwrap_or_default() + b'?');
        if run.len() > 3 {
            let _ = write!(text, "!{}{sixel}", run.len());
        } else {
            text.extend(std::iter::repeat_n(sixel, run.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws a sequence as a terminal does.
    fn drawn(text: &str) -> (usize, usize, Vec<Option<[u32; 3]>>) {
        let body = text.strip_prefix("\u{1b}P0;1q\"1;1;").unwrap();
        let body = body.strip_suffix("\u{1b}\\").unwrap();
        let mut rest = body;
        let number = |rest: &mut &str| {
            let end = rest
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(rest.len());
            let (digits, after) = rest.split_at(end);
            *rest = after;
            digits.parse::<usize>().unwrap()
        };
        let width = number(&mut rest);
        rest = &rest[1..];
        let height = number(&mut rest);
        let mut pixels = vec![None; width * height];
        let mut palette = HashMap::new();
        let (mut color, mut x, mut top, mut count) = (0, 0, 0, 1);
        while let Some(next) = rest.chars().next() {
            rest = &rest[1..];
            match next {
                '#' => {
                    color = number(&mut rest);
                    if rest.starts_with(";2;") {
                        rest = &rest[2..];
                        let part = |rest: &mut &str| {
                            *rest = &rest[1..];
                            u32::try_from(number(rest)).unwrap()
                        };
                        palette.insert(color, [part(&mut rest), part(&mut rest), part(&mut rest)]);
                    }
                }
                '!' => count = number(&mut rest),
                '$' => x = 0,
                '-' => (x, top) = (0, top + 6),
                sixel => {
                    let bits = u32::from(sixel) - u32::from('?');
                    for x in x..x + count {
                        for row in (0..6).filter(|row| bits & (1 << row) != 0) {
                            pixels[(top + row) * width + x] = Some(palette[&color]);
                        }
                    }
                    (x, count) = (x + count, 1);
                }
            }
        }
        (width, height, pixels)
    }

    fn png(width: u32, height: u32, pixel: impl Fn(u32, u32) -> Color) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, width, height);
        encoder.set_color(png::ColorType::Rgba);
        let mut writer = encoder.write_header().unwrap();
        let pixels: Vec<u8> = (0..height)
            .flat_map(|y| (0..width).map(move |x| (x, y)))
            .flat_map(|(x, y)| pixel(x, y))
            .collect();
        writer.write_image_data(&pixels).unwrap();
        writer.finish().unwrap();
        bytes
    }

    const LARGE: Pixels = Pixels {
        width: 1_000,
        height: 1_000,
    };

    #[test]
    fn an_image_of_few_colours_is_drawn_exactly() {
        let pixel = |x: u32, y: u32| match (x, y) {
            (0, _) => [255, 0, 0, 255],
            (_, 7) => [0, 255, 0, 255],
            (9, 9) => [9, 9, 9, 0],
            _ => [0, 0, 255, 255],
        };
        let text = encode(&png(10, 13, pixel), LARGE).unwrap();
        let (width, height, pixels) = drawn(&text);
        assert_eq!((width, height), (10, 13));
        for (place, found) in pixels.into_iter().enumerate() {
            let color = pixel(
                u32::try_from(place % 10).unwrap(),
                u32::try_from(place / 10).unwrap(),
            );
            let [red, green, blue, opacity] = color.map(|part| u32::from(part) * 100 / 255);
            let expected = (opacity > 0).then_some([red, green, blue]);
            assert_eq!(found, expected, "pixel {place}");
        }
    }

    #[test]
    fn an_image_of_many_colours_is_close_and_fits() {
        let pixel = |x: u32, y: u32| {
            let part = |value: u32| u8::try_from(value % 256).unwrap();
            [part(x * 2), part(y * 4), part(x + y), 255]
        };
        let most = Pixels {
            width: 32,
            height: 32,
        };
        let text = encode(&png(128, 64, pixel), most).unwrap();
        let (width, height, pixels) = drawn(&text);
        assert_eq!((width, height), (32, 16));
        let mean = pixels.iter().flatten().map(|color| color[0]).sum::<u32>() / 512;
        assert!((45..55).contains(&mean), "{mean}");
        assert!(pixels.iter().all(Option::is_some));
        // Fewer bytes than the pixels have.
        assert!(text.len() < 32 * 16 * 4 + 252 * 16, "{}", text.len());
    }

    #[test]
    fn what_is_not_an_image_is_not_drawn() {
        let good = png(4, 4, |_, _| [1, 2, 3, 255]);
        for length in 0..good.len() - 20 {
            assert_eq!(encode(&good[..length], LARGE), None, "{length}");
        }
        let mut large = good;
        // The width in the header, without its checksum.
        large[16..20].copy_from_slice(&u32::MAX.to_be_bytes());
        assert_eq!(encode(&large, LARGE), None);
        assert_eq!(encode(b"GIF89a", LARGE), None);
    }
}
