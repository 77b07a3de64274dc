//! Compares JSON numbers exactly, by value.
//!
//! Normalizes a number token to sign, significant digits and power of ten. Never converts to a binary float, because
//! `1`, `1.0` and `10e-1` must be one id, while 2^53 and 2^53 + 1 must stay two.

use std::borrow::Cow;

/// A number without leading or trailing zeros; zero has no digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Decimal<'a> {
    negative: bool,
    digits: Cow<'a, str>,
    exponent: i64,
}

impl<'a> Decimal<'a> {
    /// Parses a JSON number; `None` if it violates the grammar of RFC 8259.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (integer, rest) = split_digits(rest);
        if integer.is_empty() || (integer.len() > 1 && integer.starts_with('0')) {
            return None;
        }
        let (fraction, rest) = match rest.strip_prefix('.') {
            Some(rest) => {
                let (fraction, rest) = split_digits(rest);
                if fraction.is_empty() {
                    return None;
                }
                (fraction.trim_end_matches('0'), rest)
            }
            None => ("", rest),
        };
        let stated = match rest.strip_prefix(['e', 'E']) {
            Some(rest) => parse_exponent(rest)?,
            None if rest.is_empty() => 0,
            None => return None,
        };

        let digits = if fraction.is_empty() {
            Cow::Borrowed(integer)
        } else {
            Cow::Owned([integer, fraction].concat())
        };
        let digits = trim_leading_zeros(digits);
        if digits.is_empty() {
            return Some(Self {
                negative: false,
                digits,
                exponent: 0,
            });
        }
        let before = digits.len();
        let digits = trim_trailing_zeros(digits);
        let exponent = stated
            .saturating_add(length(before - digits.len()))
            .saturating_sub(length(fraction.len()));
        Some(Self {
            negative,
            digits,
            exponent,
        })
    }

    /// Whether the value is an integer of any size.
    pub(crate) fn is_integer(&self) -> bool {
        self.exponent >= 0
    }

    /// The value as an integer, if it is one and fits.
    pub(crate) fn to_integer(&self) -> Option<i128> {
        if self.digits.is_empty() {
            return Some(0);
        }
        let power = u32::try_from(self.exponent).ok()?;
        let digits: i128 = self.digits.parse().ok()?;
        let value = digits.checked_mul(10_i128.checked_pow(power)?)?;
        Some(if self.negative { -value } else { value })
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text
        .bytes()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

/// Exponents that exceed 64 bits saturate: such numbers only have to stay unequal to sane ones.
fn parse_exponent(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let value = digits.parse().unwrap_or(i64::MAX);
    Some(if negative { -value } else { value })
}

fn trim_leading_zeros(digits: Cow<'_, str>) -> Cow<'_, str> {
    match digits {
        Cow::Borrowed(digits) => Cow::Borrowed(digits.trim_start_matches('0')),
        Cow::Owned(digits) => Cow::Owned(digits.trim_start_matches('0').to_owned()),
    }
}

fn trim_trailing_zeros(digits: Cow<'_, str>) -> Cow<'_, str> {
    match digits {
        Cow::Borrowed(digits) => Cow::Borrowed(digits.trim_end_matches('0')),
        Cow::Owned(mut digits) => {
            digits.truncate(digits.trim_end_matches('0').len());
            Cow::Owned(digits)
        }
    }
}

fn length(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_one_normal_form() {
        for group in [
            &[
                "1", "1.0", "1.00", "10e-1", "0.1e1", "1E0", "1e+0", "0.001e3",
            ][..],
            &["0", "-0", "0.0", "0e99", "-0.0e-7"],
            &["100", "1e2", "1.00e2", "1000e-1"],
            &["-12.50", "-125e-1", "-1.25E1"],
            &[
                "9007199254740993",
                "9007199254740993.0",
                "9007199254740993e0",
            ],
        ] {
            for text in group {
                assert_eq!(Decimal::parse(text), Decimal::parse(group[0]), "{text}");
                assert!(Decimal::parse(text).is_some(), "{text}");
            }
        }
        assert_ne!(
            Decimal::parse("9007199254740993"),
            Decimal::parse("9007199254740992")
        );
        assert_ne!(Decimal::parse("1"), Decimal::parse("-1"));
        assert_ne!(
            Decimal::parse("1e999999999999999999999"),
            Decimal::parse("1")
        );
    }

    #[test]
    fn invalid_json_numbers_are_rejected() {
        for text in [
            "", "-", "+1", "01", "1.", ".5", "1e", "1e+", "NaN", "Infinity", "0x10", "1 ", " 1",
            "1.0.0", "1e1.5", "--1", "１",
        ] {
            assert_eq!(Decimal::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn integers_are_exact_or_none() {
        for (text, expected) in [
            ("0", Some(0)),
            ("-0.0", Some(0)),
            ("12e1", Some(120)),
            ("1.5", None),
            ("15e-1", None),
            ("-7", Some(-7)),
            ("18446744073709551615", Some(18_446_744_073_709_551_615)),
            ("1e400", None),
            ("1e99999999999999999999", None),
        ] {
            let decimal = Decimal::parse(text).unwrap();
            assert_eq!(decimal.to_integer(), expected, "{text}");
        }
    }
}
