//! Programs with a word that makes them run what follows it: `uv run`, `bundle exec`.

use crate::shell::Text;
use crate::wrapper::Behind;

struct Runner {
    name: &'static str,
    /// None are needed by a program that does nothing else.
    verbs: &'static [&'static str],
    /// Words between the verb and the command.
    operands: usize,
    /// It may fetch what it runs.
    fetches: bool,
}

const fn plain(name: &'static str, verbs: &'static [&'static str]) -> Runner {
    Runner {
        name,
        verbs,
        operands: 0,
        fetches: false,
    }
}

const fn fetching(name: &'static str, verbs: &'static [&'static str]) -> Runner {
    Runner {
        fetches: true,
        ..plain(name, verbs)
    }
}

const ALL: &[Runner] = &[
    plain("uv", &["run"]),
    plain("poetry", &["run"]),
    plain("pipenv", &["run"]),
    plain("pdm", &["run"]),
    plain("hatch", &["run"]),
    plain("rye", &["run"]),
    plain("conda", &["run"]),
    plain("mamba", &["run"]),
    plain("bundle", &["exec"]),
    plain("rbenv", &["exec"]),
    plain("pyenv", &["exec"]),
    plain("asdf", &["exec"]),
    plain("mise", &["exec", "x"]),
    plain("doppler", &["run"]),
    plain("op", &["run"]),
    Runner {
        operands: 1,
        ..plain("direnv", &["exec"])
    },
    Runner {
        operands: 1,
        ..plain("aws-vault", &["exec"])
    },
    plain(
        "perf",
        &["stat", "record", "trace", "mem", "c2c", "ftrace", "kvm"],
    ),
    fetching("npx", &[]),
    fetching("uvx", &[]),
    fetching("bunx", &[]),
    fetching("pnpm", &["exec", "dlx"]),
    fetching("yarn", &["exec", "dlx"]),
    fetching("pipx", &["run"]),
];

#[derive(Debug)]
pub(crate) struct Ran {
    /// All words before the command: what a rule about the runner is about.
    pub(crate) spelled: String,
    pub(crate) behind: Behind,
}

/// None: it does something of its own.
pub(crate) fn behind(name: &str, words: &[Text]) -> Option<Ran> {
    let runner = ALL.iter().find(|it| it.name == name)?;
    let unsure = |from| {
        Some(Ran {
            spelled: name.to_owned(),
            behind: Behind::Unsure(from),
        })
    };
    let mut at = 1;
    if !runner.verbs.is_empty() {
        let verb = |it: &Text| it.known().is_some_and(|it| runner.verbs.contains(&it));
        match words.get(1)?.known() {
            None => return unsure(1),
            // Its value, if it has one, is not told from a verb.
            Some(option) if option.starts_with('-') => {
                return if words.iter().any(verb) {
                    unsure(2)
                } else {
                    None
                };
            }
            Some(word) if runner.verbs.contains(&word) => at = 2,
            Some(_) => return None,
        }
    }
    for _ in 0..runner.operands {
        if words.get(at)?.known().is_none_or(|it| it.starts_with('-')) {
            return unsure(at);
        }
        at += 1;
    }
    if words.get(at)?.known() == Some("--") {
        at += 1;
    }
    let Some(command) = words.get(at)?.known() else {
        return unsure(at);
    };
    if command.starts_with('-') {
        return match words.len() > at + 1 {
            true => unsure(at + 1),
            false => None,
        };
    }
    // A script by name, as behind an interpreter.
    let script = [".py", ".js", ".mjs", ".cjs", ".ts"];
    if script.iter().any(|it| command.ends_with(it)) {
        return None;
    }
    let before: Option<Vec<&str>> = words.get(1..at)?.iter().map(Text::known).collect();
    let before = before?;
    if before.iter().any(|it| it.contains(char::is_whitespace)) {
        return unsure(at);
    }
    let spelled = std::iter::once(name).chain(before);
    Some(Ran {
        spelled: spelled.collect::<Vec<_>>().join(" "),
        behind: Behind::Command(at),
    })
}

/// Whether something may be fetched; none for what is no runner.
pub(crate) fn fetches(spelled: &str) -> Option<bool> {
    let name = spelled.split(' ').next()?;
    ALL.iter().find(|it| it.name == name).map(|it| it.fetches)
}
