//! Programs that work on all that is below the current directory when no path is named to them.

use glovebox_risk::{Command, Direction, Word};

/// How the words of such a program are told apart.
struct Walker {
    names: &'static [&'static str],
    /// Short and long options with a value of their own.
    values: &'static str,
    long_values: &'static [&'static str],
    /// Options that say what the first operand says otherwise.
    instead: &'static [&'static str],
    /// Operands before the first path; none where only what is behind `--` is one for sure.
    operands: Option<usize>,
    when: When,
    /// It may run a command for what it finds.
    runs: bool,
}

#[derive(PartialEq, Eq)]
enum When {
    Always,
    /// Not where it reads a pipe.
    Unfed,
    /// With one of these letters, or with a long option that begins like this.
    Asked(&'static str, &'static str),
}

const SEARCH_LONG: &[&str] = &[
    "after-context",
    "before-context",
    "context",
    "max-count",
    "regexp",
    "file",
];

const ALL: &[Walker] = &[
    Walker {
        names: &["grep", "egrep", "fgrep", "ggrep"],
        values: "ABCDdefm",
        long_values: &[
            "devices",
            "directories",
            "include",
            "exclude",
            "exclude-from",
            "exclude-dir",
            "binary-files",
            "label",
        ],
        instead: &["e", "f", "regexp", "file"],
        operands: Some(1),
        when: When::Asked("rRd", "--d"),
        runs: false,
    },
    Walker {
        names: &["rgrep"],
        values: "ABCDdefm",
        long_values: &["include", "exclude", "exclude-from", "exclude-dir"],
        instead: &["e", "f", "regexp", "file"],
        operands: Some(1),
        when: When::Always,
        runs: false,
    },
    Walker {
        names: &["rg", "ripgrep", "ug", "ugrep"],
        values: "ABCEMTdefgjmrt",
        long_values: &[
            "color",
            "colors",
            "encoding",
            "engine",
            "glob",
            "iglob",
            "ignore-file",
            "max-columns",
            "max-depth",
            "max-filesize",
            "path-separator",
            "pre",
            "pre-glob",
            "replace",
            "sort",
            "sortr",
            "threads",
            "type",
            "type-add",
            "type-clear",
            "type-not",
        ],
        instead: &["e", "f", "regexp", "file", "files"],
        operands: Some(1),
        when: When::Unfed,
        runs: false,
    },
    Walker {
        names: &["ag", "ack", "ack-grep"],
        values: "ABCGgmpW",
        long_values: &[
            "after",
            "before",
            "depth",
            "file-search-regex",
            "ignore",
            "ignore-dir",
            "ignore-file",
            "match",
            "output",
            "pager",
            "path-to-ignore",
            "type",
            "workers",
        ],
        instead: &["g", "f", "match"],
        operands: Some(1),
        when: When::Unfed,
        runs: false,
    },
    Walker {
        names: &["fd", "fdfind"],
        values: "EScdejot",
        long_values: &[
            "changed-before",
            "changed-within",
            "color",
            "exclude",
            "extension",
            "ignore-file",
            "max-depth",
            "min-depth",
            "owner",
            "size",
            "threads",
            "type",
        ],
        instead: &[],
        operands: Some(1),
        when: When::Always,
        runs: true,
    },
    Walker {
        names: &["du"],
        values: "BXdt",
        long_values: &[
            "block-size",
            "exclude",
            "exclude-from",
            "max-depth",
            "threshold",
        ],
        instead: &[],
        operands: Some(0),
        when: When::Always,
        runs: false,
    },
    Walker {
        names: &["tree"],
        values: "HILPTo",
        long_values: &["charset", "filelimit", "gitfile", "infofile", "timefmt"],
        instead: &[],
        operands: Some(0),
        when: When::Always,
        runs: false,
    },
    Walker {
        names: &["ls", "dir", "vdir"],
        values: "ITw",
        long_values: &["block-size", "hide", "ignore", "tabsize", "width"],
        instead: &[],
        operands: Some(0),
        when: When::Asked("R", "--rec"),
        runs: false,
    },
    Walker {
        names: &["git add", "git clean"],
        values: "e",
        long_values: &["chmod", "exclude"],
        instead: &[],
        operands: Some(0),
        when: When::Always,
        runs: false,
    },
    Walker {
        names: &["git archive"],
        values: "o",
        long_values: &["exec", "format", "output", "remote"],
        instead: &[],
        operands: Some(1),
        when: When::Always,
        runs: false,
    },
    // What stands before `--` may be a revision, which is all of it.
    Walker {
        names: &["git grep"],
        values: "",
        long_values: &[],
        instead: &[],
        operands: None,
        when: When::Always,
        runs: false,
    },
];

/// Whether it reaches all below the directory in which it is started.
pub(crate) fn walks_here(command: &Command) -> bool {
    let Some(Word::Known(first)) = command.words.first() else {
        return false;
    };
    let name = super::command::base(first);
    let words: Vec<&str> = command.words.iter().skip(1).map(shown).collect();
    match name {
        "find" | "gfind" => !find_names_a_path(&words),
        "git" => {
            let at = verb(&words);
            let verb = words.get(at).map(|it| format!("git {it}"));
            let rest = words.get(at + 1..).unwrap_or_default();
            verb.is_some_and(|it| walks(&it, rest, command))
        }
        _ => walks(name, &words, command),
    }
}

fn shown(word: &Word) -> &str {
    match word {
        Word::Known(text) | Word::Unknown(text) => text,
    }
}

fn walks(name: &str, words: &[&str], command: &Command) -> bool {
    let Some(walker) = ALL.iter().find(|it| it.names.contains(&name)) else {
        return false;
    };
    let reads = |it: &glovebox_risk::Redirect| it.direction == Direction::Read;
    let asked = match walker.when {
        When::Always => true,
        When::Unfed => !command.fed || command.redirects.iter().any(reads),
        When::Asked(letters, long) => words.iter().any(|it| match it.strip_prefix("--") {
            Some(_) => it.starts_with("--rec") || it.starts_with(long),
            None => walker.flags(it).contains(|it| letters.contains(it)),
        }),
    };
    asked && !walker.names_a_path(words)
}

impl Walker {
    fn names_a_path(&self, words: &[&str]) -> bool {
        let mut operands = self.operands;
        let mut words = words.iter();
        while let Some(word) = words.next() {
            // What `fd` runs follows.
            if matches!(*word, "-x" | "-X" | "--exec" | "--exec-batch") && self.runs {
                return false;
            }
            if *word == "--" {
                return words.len() > operands.unwrap_or(0);
            }
            if !word.starts_with('-') || *word == "-" {
                match operands {
                    Some(0) => return true,
                    Some(more) => operands = Some(more - 1),
                    None => {}
                }
                continue;
            }
            let (option, takes_next) = self.option(word);
            if self.instead.contains(&option) {
                operands = Some(0);
            }
            if takes_next {
                words.next();
            }
        }
        false
    }

    /// The letters of a word of short options, up to the first with a value.
    fn flags<'w>(&self, word: &'w str) -> &'w str {
        let letters = word.strip_prefix('-').unwrap_or_default();
        let end = letters.find(|it| self.values.contains(it));
        // That one too: `-d recurse`.
        letters
            .get(..end.map_or(letters.len(), |it| it + 1))
            .unwrap_or_default()
    }

    /// The name of the option that may have a value, and whether that is the next word.
    fn option<'w>(&self, word: &'w str) -> (&'w str, bool) {
        if let Some(long) = word.strip_prefix("--") {
            let (name, attached) = match long.split_once('=') {
                Some((name, _)) => (name, true),
                None => (long, false),
            };
            let valued = self.long_values.contains(&name)
                || (!self.instead.is_empty() && SEARCH_LONG.contains(&name));
            return (name, valued && !attached);
        }
        let flags = self.flags(word);
        let last = flags.len().saturating_sub(1);
        let name = flags.get(last..).unwrap_or_default();
        let valued = !name.is_empty() && self.values.contains(name);
        (name, valued && flags.len() + 1 == word.len())
    }
}

/// Paths stand before everything else.
fn find_names_a_path(words: &[&str]) -> bool {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "-H" | "-L" | "-P" => {}
            "-D" => {
                words.next();
            }
            _ if word.starts_with("-O") => {}
            // It reads them from a file.
            _ if word.starts_with("-files0-from") => return false,
            _ => return !word.starts_with(['-', '(', '!', ')', ',']),
        }
    }
    false
}

/// Where the verb of `git` stands.
fn verb(words: &[&str]) -> usize {
    let mut at = 0;
    while let Some(word) = words.get(at).filter(|it| it.starts_with('-')) {
        let valued = [
            "-C",
            "-c",
            "--git-dir",
            "--work-tree",
            "--namespace",
            "--config-env",
        ];
        at += 1 + usize::from(valued.contains(word));
    }
    at
}
