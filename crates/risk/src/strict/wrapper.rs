//! Programs that run the command behind them in the same directory, with the same files and
//! variables: only when and how fast differs.

use crate::environment::{assigned, may_change_what_runs};

/// Options that stand alone, by themselves or before a value of their own, and how many words come
/// before the command.
struct Wrapper {
    name: &'static str,
    alone: &'static [&'static str],
    valued: &'static [&'static str],
    operands: usize,
}

const fn wrapper(
    name: &'static str,
    alone: &'static [&'static str],
    valued: &'static [&'static str],
) -> Wrapper {
    Wrapper {
        name,
        alone,
        valued,
        operands: 0,
    }
}

const TRANSPARENT: [Wrapper; 11] = [
    wrapper("env", &[], &[]),
    wrapper("nice", &[], &["-n"]),
    wrapper("ionice", &["-t"], &["-c", "-n"]),
    wrapper("nohup", &[], &[]),
    wrapper("stdbuf", &[], &["-i", "-o", "-e"]),
    wrapper("setsid", &["-w", "--wait"], &[]),
    wrapper("command", &[], &[]),
    wrapper("time", &["-p"], &[]),
    Wrapper {
        operands: 1,
        ..wrapper(
            "timeout",
            &["--foreground", "--preserve-status", "-v", "--verbose"],
            &["-k", "-s"],
        )
    },
    Wrapper {
        operands: 1,
        ..wrapper("taskset", &["-c"], &[])
    },
    Wrapper {
        operands: 1,
        ..wrapper("chrt", &["-b", "-f", "-i", "-o", "-r"], &[])
    },
];

pub(super) fn is_one(name: &str) -> bool {
    TRANSPARENT.iter().any(|it| it.name == name)
}

/// Where the command begins behind a transparent wrapper; the option that is not plain; `None` for
/// what is no such wrapper, or runs nothing.
pub(super) fn behind<'w>(name: &str, words: &'w [String]) -> Option<Result<usize, &'w str>> {
    let wrapper = TRANSPARENT.iter().find(|it| it.name == name)?;
    // It only tells where a program lies.
    if name == "command" && words.get(1).is_some_and(|it| it == "-v" || it == "-V") {
        return None;
    }
    let mut operands = wrapper.operands;
    let mut at = 1;
    while let Some(word) = words.get(at) {
        if word.starts_with('-') && operands == wrapper.operands {
            match wrapper.option(word) {
                Some(taken) => at += taken,
                None => return Some(Err(word)),
            }
        } else if name == "env" && word.contains('=') {
            if assigned(word).is_none_or(may_change_what_runs) {
                return Some(Err(word));
            }
            at += 1;
        } else if operands > 0 {
            operands -= 1;
            at += 1;
        } else if word.starts_with('-') {
            return Some(Err(word));
        } else {
            return Some(Ok(at));
        }
    }
    // `env` by itself shows its variables; the others have nothing to run.
    None
}

impl Wrapper {
    /// How many words it takes; `None` for what is not plain.
    fn option(&self, word: &str) -> Option<usize> {
        if self.alone.contains(&word) {
            return Some(1);
        }
        if self.valued.contains(&word) {
            return Some(2);
        }
        let attached = |it: &&&str| word.starts_with(**it) && !word.starts_with("--");
        let value = |it: &&str| word.get(it.len()..).unwrap_or_default();
        // `-oL`, `-n5`.
        let plain = |it: &str| it.bytes().all(|it| it.is_ascii_alphanumeric());
        let found = self.valued.iter().find(attached)?;
        plain(value(found)).then_some(1)
    }
}
