//! Times as people write them.

use glovebox_model::{Code, Error, Millis, Result, Stage};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// A time with its zone, a day in UTC, or how long ago.
pub(super) fn parse(flag: &str, text: &str, now: Timestamp) -> Result<Timestamp> {
    let at = text.parse::<Timestamp>().ok();
    let at = at.or_else(|| day(text)).or_else(|| ago(text, now));
    at.ok_or_else(|| {
        let shown: String = text.chars().take(80).flat_map(char::escape_debug).collect();
        Error::new(
            Code::InvalidArgument,
            Stage::Parse,
            format!("`{flag} {shown}` is not a time"),
        )
        .hint("write `2026-08-01`, `2026-08-01T10:00:00Z`, or how long ago: `30m`, `2h`, `7d`")
    })
}

fn day(text: &str) -> Option<Timestamp> {
    // A date alone; the parser would also take one with a time and no zone.
    let date: Date = (text.len() == 10).then(|| text.parse().ok())??;
    Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

fn ago(text: &str, now: Timestamp) -> Option<Timestamp> {
    // A bare number would be seconds; here it is more likely a mistake.
    text.ends_with(|c: char| c.is_ascii_alphabetic())
        .then_some(())?;
    let age: Millis = text.parse().ok()?;
    let age = SignedDuration::from_millis(i64::try_from(age.get()).ok()?);
    now.checked_sub(age).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_time_a_day_or_an_age() {
        let now: Timestamp = "2026-08-02T12:00:00Z".parse().unwrap();
        let read = |text: &str| parse("--since", text, now).map(|at| at.to_string());
        for (text, at) in [
            ("2026-08-01T10:00:00Z", "2026-08-01T10:00:00Z"),
            ("2026-08-01T10:00:00.5+02:00", "2026-08-01T08:00:00.5Z"),
            ("2026-08-01", "2026-08-01T00:00:00Z"),
            ("90m", "2026-08-02T10:30:00Z"),
            ("1d", "2026-08-01T12:00:00Z"),
        ] {
            assert_eq!(read(text).unwrap(), at, "{text}");
        }
        for text in [
            "",
            "yesterday",
            "5",
            "2026-13-01",
            "2026-08-01T10:00:00",
            "999999999d",
        ] {
            assert_eq!(
                read(text).unwrap_err().code,
                Code::InvalidArgument,
                "{text}"
            );
        }
    }
}
