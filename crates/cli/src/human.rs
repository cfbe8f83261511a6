//! Quantities, times and command lines as people read them.

use glovebox_model::ByteString;
use jiff::Timestamp;

/// `12ms`, `1.2s`, `3m 4s`, `2h 5m`, `3d 4h`.
pub(crate) fn duration(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let pair = |large: u64, unit: &str, small: u64, small_unit: &str| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit} {small}{small_unit}"),
    };
    match milliseconds {
        0..1000 => format!("{milliseconds}ms"),
        1000..60_000 => format!("{seconds}.{}s", milliseconds % 1000 / 100),
        60_000..3_600_000 => pair(minutes, "m", seconds % 60, "s"),
        3_600_000..86_400_000 => pair(hours, "h", minutes % 60, "m"),
        _ => pair(days, "d", hours % 24, "h"),
    }
}

/// One unit: `5s`, `3m`, `2h`, `4d`. A clock that was set back gives `0s`.
pub(crate) fn age(since: Timestamp, now: Timestamp) -> String {
    match now.as_second().saturating_sub(since.as_second()) {
        ..0 => "0s".to_owned(),
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m", seconds / 60),
        seconds @ 3600..86_400 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// `17 B`, `1.2 KiB`, `3.0 GiB`.
pub(crate) fn size(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.into_iter().find(|(shift, _)| bytes >> shift > 0) {
        None => format!("{bytes} B"),
        Some((shift, unit)) => {
            let tenths = (u128::from(bytes) * 10) >> shift;
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        }
    }
}

/// To the second, in UTC.
pub(crate) fn time(at: Timestamp) -> String {
    format!("{at:.0}")
}

/// A number and what it counts.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        number => format!("{number} {many}"),
    }
}

/// As one would type it. What cannot be printed is left to whoever prints it.
pub(crate) fn command_line(cmd: &ByteString, args: &[ByteString]) -> String {
    let words: Vec<String> = std::iter::once(cmd).chain(args).map(quoted).collect();
    words.join(" ")
}

fn quoted(word: &ByteString) -> String {
    let text = word.display();
    let plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// At most so many characters; what is cut off shows as `…`.
pub(crate) fn clip(text: &str, most: usize) -> String {
    if text.chars().nth(most).is_none() {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most - 1).collect();
    kept + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_at_most_two_units() {
        let shown: Vec<String> = [
            0, 999, 1000, 1250, 59_999, 60_000, 184_000, 7_500_000, 90_000_000,
        ]
        .map(duration)
        .into();
        assert_eq!(
            shown,
            [
                "0ms", "999ms", "1.0s", "1.2s", "59.9s", "1m", "3m 4s", "2h 5m", "1d 1h"
            ]
        );
    }

    #[test]
    fn ages_have_one_unit_and_are_never_negative() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let shown: Vec<String> = [-5, 0, 59, 60, 3599, 3600, 86_399, 86_400, 900_000]
            .map(|seconds| age(at(0), at(seconds)))
            .into();
        assert_eq!(
            shown,
            ["0s", "0s", "59s", "1m", "59m", "1h", "23h", "1d", "10d"]
        );
    }

    #[test]
    fn sizes_are_short() {
        let shown: Vec<String> = [0, 1023, 1024, 1_300_000, 3 << 30, u64::MAX]
            .map(size)
            .into();
        assert_eq!(
            shown,
            [
                "0 B",
                "1023 B",
                "1.0 KiB",
                "1.2 MiB",
                "3.0 GiB",
                "16777215.9 TiB"
            ]
        );
    }

    #[test]
    fn a_command_line_could_be_typed_again() {
        let words = |texts: &[&[u8]]| -> Vec<ByteString> {
            let word = |text: &&[u8]| ByteString::new(*text).unwrap();
            texts.iter().map(word).collect()
        };
        let all = words(&[b"sh", b"-c", b"echo it's $HOME", b"", b"--x=1", b"\xff"]);
        assert_eq!(
            command_line(&all[0], &all[1..]),
            r"sh -c 'echo it'\''s $HOME' '' --x=1 '\xff'"
        );
    }

    #[test]
    fn clipping_counts_characters() {
        assert_eq!(clip("żółć", 4), "żółć");
        assert_eq!(clip("żółć!", 4), "żół…");
    }
}
