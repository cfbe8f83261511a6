//! Quantities with their units as types, so that a time can never be passed as a size.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {expected}")]
pub struct UnitError {
    pub text: String,
    pub expected: &'static str,
}

fn wrong(text: &str, expected: &'static str) -> UnitError {
    UnitError {
        text: text.chars().take(80).collect(),
        expected,
    }
}

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl $name {
            pub const fn get(self) -> $inner {
                self.0
            }
        }
    };
}

quantity!(
    /// A size in bytes. Written `512M`, `1G`, `4096`; `K`, `M`, `G`, `T` are powers of 1024.
    Bytes(u64)
);
quantity!(
    /// A duration in milliseconds. Written `250ms`, `30s`, `5m`, `1h`; a bare number is seconds.
    Millis(u64)
);
quantity!(
    /// A number of things: processes, files, descriptors.
    Count(u64)
);
quantity!(
    /// Processor time as a rate, in thousandths of one processor. Written `0.5`, `2`.
    Cpus(u32)
);

impl Bytes {
    pub const fn mib(n: u64) -> Self {
        Self(n << 20)
    }
}

impl Millis {
    pub const fn secs(n: u64) -> Self {
        Self(n * 1000)
    }
    pub const fn duration(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

impl Cpus {
    pub const fn whole(n: u32) -> Self {
        Self(n * 1000)
    }
}

/// Splits `1.5G` into the number as an exact fraction over 1000 and the rest.
fn number_and_unit(text: &str) -> Option<(u64, &str)> {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || (number.contains('.') && fraction.is_empty()) || fraction.len() > 3 {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let fraction: u64 = if fraction.is_empty() {
        0
    } else {
        format!("{fraction:0<3}").parse().ok()?
    };
    Some((whole.checked_mul(1000)?.checked_add(fraction)?, unit))
}

impl FromStr for Bytes {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let expected = "a size such as `512M`, `1G` or `4096`";
        let parse = || {
            let (thousandths, unit) = number_and_unit(text)?;
            let scale: u64 = match unit.to_ascii_uppercase().as_str() {
                "" | "B" => 1,
                "K" | "KB" | "KIB" => 1 << 10,
                "M" | "MB" | "MIB" => 1 << 20,
                "G" | "GB" | "GIB" => 1 << 30,
                "T" | "TB" | "TIB" => 1 << 40,
                _ => return None,
            };
            let bytes = u128::from(thousandths) * u128::from(scale) / 1000;
            u64::try_from(bytes).ok().map(Self)
        };
        parse().ok_or_else(|| wrong(text, expected))
    }
}

impl FromStr for Millis {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let expected = "a duration such as `30s`, `250ms`, `5m` or `1h`";
        let parse = || {
            let (thousandths, unit) = number_and_unit(text)?;
            let millis: u64 = match unit {
                "ms" => 1,
                "" | "s" => 1000,
                "m" | "min" => 60_000,
                "h" => 3_600_000,
                "d" => 86_400_000,
                _ => return None,
            };
            let total = u128::from(thousandths) * u128::from(millis) / 1000;
            u64::try_from(total).ok().map(Self)
        };
        parse().ok_or_else(|| wrong(text, expected))
    }
}

impl FromStr for Count {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        text.parse()
            .map(Self)
            .map_err(|_| wrong(text, "a whole number"))
    }
}

impl FromStr for Cpus {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let parse = || match number_and_unit(text)? {
            (thousandths, "") => u32::try_from(thousandths).ok().map(Self),
            _ => None,
        };
        parse().ok_or_else(|| wrong(text, "a number of processors such as `0.5` or `2`"))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (shift, unit) in [(40, "T"), (30, "G"), (20, "M"), (10, "K")] {
            if self.0 >= 1 << shift && self.0.is_multiple_of(1 << shift) {
                return write!(f, "{}{unit}", self.0 >> shift);
            }
        }
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("0s"),
            n if n.is_multiple_of(3_600_000) => write!(f, "{}h", n / 3_600_000),
            n if n.is_multiple_of(60_000) => write!(f, "{}m", n / 60_000),
            n if n.is_multiple_of(1000) => write!(f, "{}s", n / 1000),
            n => write!(f, "{n}ms"),
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_multiple_of(1000) {
            write!(f, "{}", self.0 / 1000)
        } else {
            write!(
                f,
                "{}",
                format!("{}.{:03}", self.0 / 1000, self.0 % 1000).trim_end_matches('0')
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn people_write_units() {
        assert_eq!("512M".parse(), Ok(Bytes::mib(512)));
        assert_eq!("1.5g".parse(), Ok(Bytes(3 << 29)));
        assert_eq!("4096".parse(), Ok(Bytes(4096)));
        assert_eq!("30s".parse(), Ok(Millis::secs(30)));
        assert_eq!("30".parse(), Ok(Millis::secs(30)));
        assert_eq!("250ms".parse(), Ok(Millis(250)));
        assert_eq!("1.5h".parse(), Ok(Millis(5_400_000)));
        assert_eq!("0.5".parse(), Ok(Cpus(500)));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "-1",
            "1e9",
            "M",
            "1 G",
            "1.",
            ".5",
            "9999999999T",
            "1.2345",
            "0x10",
            "١",
        ] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
        for text in ["", "-1s", "1y", "s", "999999999999999999h"] {
            assert!(text.parse::<Millis>().is_err(), "{text}");
        }
        for text in ["", "-1", "1.5", "x"] {
            assert!(text.parse::<Count>().is_err(), "{text}");
        }
        for text in ["", "1cpu", "-1", "5000000"] {
            assert!(text.parse::<Cpus>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_parses_back(n in 0u64..u64::MAX / 4_000_000) {
            prop_assert_eq!(Bytes(n).to_string().parse(), Ok(Bytes(n)));
            prop_assert_eq!(Millis(n).to_string().parse(), Ok(Millis(n)));
        }
        #[test]
        fn cpus_shown_parse_back(n in 0u32..1_000_000) {
            prop_assert_eq!(Cpus(n).to_string().parse(), Ok(Cpus(n)));
        }
        #[test]
        fn parsing_never_panics(text in "\\PC{0,30}") {
            let _ = (text.parse::<Bytes>(), text.parse::<Millis>(), text.parse::<Cpus>());
        }
    }
}
