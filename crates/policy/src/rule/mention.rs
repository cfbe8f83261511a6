//! Paths and hosts that commands mention. Every word may be a path: `cat notes` reads one.

use std::collections::BTreeSet;

use glovebox_model::HostPattern;
use glovebox_risk::{Command, Files, Word};

use super::facts::{MOVES, Segment, Value, WORD_BYTES_MAX, WORK};
use super::host::destination_of_url;
use super::path::{PathFact, clean};
use super::walk::walks_here;

/// A script that changes its directory more often is not followed.
const PLACES_MAX: usize = 16;
/// No word holds more paths than that.
const PIECES_MAX: usize = 16;
/// Options by which a program works in another directory.
const ELSEWHERE: [&str; 7] = [
    "-C",
    "--chdir",
    "--directory",
    "--cwd",
    "--prefix",
    "--work-tree",
    "--git-dir",
];
/// Programs that do nothing with what is below a directory that they are given.
const FLAT: [&str; 20] = [
    "cd", "pushd", "popd", "echo", "printf", "test", "[", "ls", "mkdir", "rmdir", "stat",
    "basename", "dirname", "realpath", "tr", "cut", "expr", "date", "true", ":",
];

#[derive(Debug, Default)]
pub(crate) struct Mentions {
    pub(crate) paths: BTreeSet<PathFact>,
    pub(crate) hosts: BTreeSet<HostPattern>,
    /// Parts of words that may be paths as well. Only for rules that deny or ask.
    pub(crate) perhaps: BTreeSet<PathFact>,
    /// Of all these, what stands for all that is below it.
    pub(crate) trees: BTreeSet<PathFact>,
}

impl Mentions {
    pub(crate) fn of(commands: &[Command], segments: &[Segment], cwd: &str) -> Self {
        let mut mentions = Self::default();
        let places = directories(segments, cwd);
        for command in commands {
            let places = places.as_ref().and_then(|it| moved(command, it));
            mentions.note(command, places.as_deref());
        }
        mentions
    }

    /// Files that code names; false when it cannot be told where they would be.
    pub(crate) fn name(&mut self, files: &Files, segments: &[Segment], cwd: &str) -> bool {
        let places = directories(segments, cwd);
        let mut told = true;
        for name in &files.names {
            let known = !name.starts_with('~');
            match &places {
                _ if name.starts_with(['/', '~']) => {
                    self.perhaps.insert(PathFact::of(name, known, WORK));
                }
                Some(places) => {
                    let found = places.iter().map(|it| PathFact::of(name, known, it));
                    self.perhaps.extend(found);
                }
                None => told = false,
            }
        }
        told
    }

    fn note(&mut self, command: &Command, places: Option<&[String]>) {
        let arguments = command.words.iter().skip(1);
        let targets = command
            .redirects
            .iter()
            .filter(|it| !it.is_harmless())
            .map(|it| &it.target);
        let program = command.words.first().into_iter().filter(|it| match it {
            Word::Known(text) => text.contains('/'),
            Word::Unknown(_) => true,
        });
        if walks_here(command) {
            let here: Vec<PathFact> = match places {
                Some(places) => places.iter().cloned().map(PathFact::Known).collect(),
                None => vec![PathFact::Unknown(".".to_owned())],
            };
            self.trees.extend(here.iter().cloned());
            self.paths.extend(here);
        }
        let deep = !is_flat(command);
        for word in program.chain(arguments).chain(targets) {
            let (text, known) = match word {
                Word::Known(text) => (text.as_str(), text.len() <= WORD_BYTES_MAX),
                Word::Unknown(text) => (text.as_str(), false),
            };
            // A piece of a pattern may be plain; of a word that nobody knows, none is.
            let plain = known || matches!(PathFact::of(text, false, WORK), PathFact::Pattern(_));
            let part = |text: &str| {
                let known = known || (plain && !text.contains(['*', '?', '~']));
                // Another root gives absolute paths another meaning too.
                match (text.starts_with(['/', '~']) && !command.moved, places) {
                    (true, _) => vec![PathFact::of(text, known, WORK)],
                    (false, Some(places)) => places
                        .iter()
                        .map(|place| PathFact::of(text, known, place))
                        .collect(),
                    (false, None) => vec![PathFact::Unknown(text.to_owned())],
                }
            };
            let main = main(text).map(part).unwrap_or_default();
            let mut found: Vec<PathFact> = pieces(text).into_iter().flat_map(part).collect();
            found.extend(links(text).into_iter().flat_map(part));
            let behind = main.iter().chain(&found).flat_map(|it| links(it.shown()));
            let behind: Vec<PathFact> = behind.flat_map(part).collect();
            found.extend(behind);
            if deep && !text.starts_with('-') {
                self.trees.extend(found.iter().cloned());
            }
            self.perhaps.extend(found);
            if let Some(host) = destination_of_url(text) {
                self.hosts.insert(host);
                if !text.starts_with("file:") {
                    continue;
                }
            }
            if deep {
                self.trees.extend(main.iter().cloned());
            }
            self.paths.extend(main);
        }
    }
}

fn is_flat(command: &Command) -> bool {
    let name = match command.words.first() {
        Some(Word::Known(name)) => name.rsplit('/').next().unwrap_or(name),
        Some(Word::Unknown(_)) | None => return false,
    };
    let below = |it: &Word| match it {
        Word::Known(text) => text.starts_with('-') && text.contains(['R', 'r']),
        Word::Unknown(_) => true,
    };
    FLAT.contains(&name) && !(name == "ls" && command.words.iter().skip(1).any(below))
}

/// The one path that a word most plainly is, or holds behind `=` or an option letter.
fn main(text: &str) -> Option<&str> {
    if let Some(rest) = text.strip_prefix("file://") {
        return Some(rest);
    }
    match text.split_once('=') {
        Some((_, value)) => Some(value).filter(|it| !it.is_empty()),
        None if text.starts_with('-') => text.find('/').map(|at| &text[at..]),
        None => Some(text).filter(|it| !it.is_empty()),
    }
}

/// Everything in a word that may be a path of its own: `a:b`, `x=y`, `-oz`, `u@h:p`.
fn pieces(text: &str) -> Vec<&str> {
    let parts = ['=', ':', ',', '@'];
    let option = text.starts_with('-');
    let mut found: Vec<&str> = Vec::new();
    let mut put = |it, sure: bool| {
        // `-f1,2` and `-la` are no files.
        let it: &str = it;
        let likely = sure || it.contains(['/', '.']);
        if likely && !it.is_empty() && !it.starts_with('-') && it != text {
            found.push(it);
        }
    };
    for (at, sign) in text.match_indices(parts).take(PIECES_MAX) {
        put(&text[at + 1..], !option || sign == "=");
    }
    for piece in text.split(parts).take(PIECES_MAX) {
        put(piece, !option);
    }
    if option && !text.starts_with("--") {
        let value = text.get(2..).unwrap_or_default();
        // More letters than anybody writes in a row.
        put(value, value.len() > 5);
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Where links of `/proc` lead: `/proc/self/root/etc` is `/etc`, `/proc/1/cwd/a` is `a`.
fn links(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut in_proc = false;
    let mut at = 0;
    for part in text.split('/') {
        let end = at + part.len();
        in_proc |= part == "proc";
        match part {
            "root" if in_proc => {
                let rest = text.get(end..).unwrap_or_default();
                found.push(if rest.is_empty() { "/" } else { rest });
            }
            "cwd" if in_proc => {
                let rest = text.get(end..).unwrap_or_default();
                found.push(rest.trim_start_matches('/'));
            }
            _ => {}
        }
        at = end + 1;
        if found.len() >= PIECES_MAX {
            break;
        }
    }
    for it in &mut found {
        if it.is_empty() {
            *it = ".";
        }
    }
    found
}

/// Every directory in which a command of the script may start; None when that cannot be told.
fn directories(segments: &[Segment], cwd: &str) -> Option<Vec<String>> {
    let mut places = vec![cwd.to_owned()];
    for segment in segments {
        let Value::Known(name) = &segment.program else {
            continue;
        };
        if !MOVES.contains(&name.as_str()) {
            continue;
        }
        let to = match segment.args.as_slice() {
            [Value::Known(to)] if name == "cd" && !to.starts_with('-') => to,
            _ => return None,
        };
        // It may not be reached, or stand in a subshell: the old places stay.
        enter(to, &mut places)?;
    }
    Some(places)
}

fn enter(to: &str, places: &mut Vec<String>) -> Option<()> {
    for at in 0..places.len() {
        let place = clean(to, &places[at]);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    (places.len() <= PLACES_MAX).then_some(())
}

/// Where a command works that is told to work elsewhere.
fn moved(command: &Command, places: &[String]) -> Option<Vec<String>> {
    if command.moved {
        return None;
    }
    let mut places = places.to_vec();
    let mut words = command.words.iter().skip(1).peekable();
    while let Some(word) = words.next() {
        let Word::Known(text) = word else { continue };
        let option = ELSEWHERE.iter().find(|it| text.starts_with(**it));
        let Some(option) = option else { continue };
        let to = match (&text[option.len()..], words.peek()) {
            ("", Some(Word::Known(next))) => next.as_str(),
            ("", Some(Word::Unknown(_))) => return None,
            ("", None) => continue,
            (attached, _) if option.starts_with("--") => match attached.strip_prefix('=') {
                Some(value) => value,
                None => continue,
            },
            (attached, _) => attached,
        };
        enter(to, &mut places)?;
    }
    Some(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_word_may_be_a_path() {
        for (word, expected) in [
            ("plain", vec![]),
            ("a:b", vec!["a", "b"]),
            ("-la", vec![]),
            ("-f1,2", vec![]),
            ("-fDockerfile", vec!["Dockerfile"]),
            ("--file=x", vec!["x"]),
            ("-o.git/x", vec![".git/x"]),
            ("u@h:/p", vec!["/p", "h", "h:/p", "u"]),
        ] {
            assert_eq!(pieces(word), expected, "{word}");
        }
        assert_eq!(links("/proc/self/root/etc/x"), ["/etc/x"]);
        assert_eq!(links("/proc/1/task/1/cwd/../a"), ["../a"]);
        assert_eq!(links("/proc/self/root"), ["/"]);
        assert_eq!(links("/proc/self/cwd"), ["."]);
        assert!(links("/root/a").is_empty());
    }
}
