//! Formats and parses timestamps, in UTC.

use switchboard_store::Timestamp;

const MILLIS_A_DAY: i64 = 86_400_000;

/// Formats for people: `2026-11-16 01:32:04`.
pub(crate) fn shown(at: Timestamp) -> String {
    let (year, month, day) = date(at.as_millis().div_euclid(MILLIS_A_DAY));
    let seconds = at.as_millis().rem_euclid(MILLIS_A_DAY) / 1000;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

/// Formats for scripts: `2026-11-16T01:32:04.125Z`.
pub(crate) fn exact(at: Timestamp) -> String {
    let millis = at.as_millis().rem_euclid(1000);
    format!("{}.{millis:03}Z", shown(at).replace(' ', "T"))
}

/// Parses a date, or a timestamp in the form of [`exact`] with or without fractional seconds.
pub(crate) fn parse(text: &str) -> Option<Timestamp> {
    let text = text.strip_suffix(['Z', 'z']).unwrap_or(text);
    let (day, time) = match text.split_once(['T', 't', ' ']) {
        Some((day, time)) => (day, Some(time)),
        None => (text, None),
    };
    let number = |part: &str, digits: usize, range: std::ops::RangeInclusive<i64>| {
        let is_plain = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
        let number: i64 = is_plain.then(|| part.parse().ok())??;
        range.contains(&number).then_some(number)
    };
    let mut parts = day.split('-');
    let year = number(parts.next()?, 4, 0..=9999)?;
    let month = number(parts.next()?, 2, 1..=12)?;
    let day = number(parts.next()?, 2, 1..=31)?;
    let days = days(year, month, day);
    if parts.next().is_some() || date(days) != (year, month, day) {
        return None;
    }
    let mut millis = days * MILLIS_A_DAY;
    if let Some(time) = time {
        let (whole, part) = time.split_once('.').unwrap_or((time, "0"));
        let mut parts = whole.split(':');
        let hour = number(parts.next()?, 2, 0..=23)?;
        let minute = number(parts.next()?, 2, 0..=59)?;
        let second = parts
            .next()
            .map_or(Some(0), |part| number(part, 2, 0..=59))?;
        if parts.next().is_some()
            || part.is_empty()
            || !part.bytes().all(|byte| byte.is_ascii_digit())
        {
            return None;
        }
        let part: String = part.chars().chain("000".chars()).take(3).collect();
        millis += ((hour * 60 + minute) * 60 + second) * 1000 + part.parse::<i64>().ok()?;
    }
    Some(Timestamp::from_millis(millis))
}

/// Converts days since 1970 to year, month, day. Years start in March here, so that a leap day comes last.
fn date(days: i64) -> (i64, i64, i64) {
    const DAYS_IN_400_YEARS: i64 = 146_097;
    let days = days + 719_468;
    let (era, day) = (
        days.div_euclid(DAYS_IN_400_YEARS),
        days.rem_euclid(DAYS_IN_400_YEARS),
    );
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

/// Converts year, month, day to days since 1970.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    let month = if month > 2 { month - 3 } else { month + 9 };
    let day = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + year * 365 + year / 4 - year / 100 + day - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_round_trip() {
        let check = |text: &str, expected: Option<i64>| {
            let found = parse(text).map(Timestamp::as_millis);
            assert_eq!(found, expected, "{text}");
        };
        check("1970-01-01", Some(0));
        check("1970-01-01T00:00:00.001Z", Some(1));
        check("2026-11-16T01:32:04Z", Some(1_794_792_724_000));
        check("2026-11-16 01:32", Some(1_794_792_720_000));
        check("2024-02-29", Some(1_709_164_800_000));
        check("1969-12-31", Some(-86_400_000));
        for text in [
            "",
            "now",
            "2026",
            "2026-13-01",
            "2026-02-29",
            "2026-1-1",
            "2026-01-01T25:00",
            "2026-01-01T",
            "2026-01-01T01:02:03.",
            "2026-01-01-01",
            "+026-01-01",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn every_day_round_trips() {
        for day in (-800_000..800_000).step_by(37) {
            let (year, month, number) = date(day);
            assert_eq!(days(year, month, number), day);
        }
        assert_eq!(
            exact(Timestamp::from_millis(1_794_792_724_125)),
            "2026-11-16T01:32:04.125Z"
        );
    }
}
