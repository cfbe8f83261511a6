//! Globs of commands, matched word by word.
//!
//! - The first word is the program. Its name counts without its directory when that is one of the
//!   usual ones (`/usr/bin/git` is `git`, in a rule as in a command); elsewhere the whole path counts.
//! - A glob of one word matches that program with any arguments.
//! - `*` as the last of several words matches any number of further words, also none. Without it
//!   the number of words must be the same.
//! - Inside a word `*` and `?` match within the word.
//!
//! An allow rule takes this literally, and takes only words whose value is known. A rule that
//! denies or asks looks past options, so that `git -C . push` is still `git push`: options of the
//! glob must be there somewhere (`-rf` is the same as `-f -r`), options that it does not name are
//! skipped, each with at most one value. A word whose value is not known counts as any words. The
//! directory of the program does not matter to it: a copy elsewhere may be the same program.

use glovebox_model::Glob;
use glovebox_risk::{is_transparent, usual_name};

use super::facts::{Segment, Value};
use super::path::clean;

/// The name under which a program is known.
pub(crate) fn program(word: &str, cwd: &str) -> String {
    if !word.contains('/') {
        return word.to_owned();
    }
    let path = clean(word, cwd);
    match usual_name(&path) {
        Some(name) => name.to_owned(),
        None => path,
    }
}

/// The name of a program wherever it lies.
pub(crate) fn base(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandGlob {
    program: Glob,
    /// All words after the program, but for a last `*`.
    words: Vec<Glob>,
    /// Of those, the options and the others.
    options: Vec<Glob>,
    plain: Vec<Glob>,
    /// Any further words.
    open: bool,
}

impl CommandGlob {
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let Some(first) = words.next() else {
            return Err("is empty; name a program, such as `git push *`".to_owned());
        };
        if first.contains('/') && !first.starts_with('/') {
            return Err("names a program by a relative path".to_owned());
        }
        // Cleaned like the program of a command, or `/usr/bin/git` would never match.
        let name = match first.contains(['*', '?']) {
            true => first.to_owned(),
            false => program(first, "/"),
        };
        let mut words: Vec<_> = words.map(|word| Glob::new(word, None)).collect();
        let open = words.is_empty() || words.last().is_some_and(|it| it.text() == "*");
        if open {
            words.pop();
        }
        let is_option = |glob: &Glob| glob.text().starts_with('-');
        let (options, plain) = words.iter().cloned().partition(is_option);
        Ok(Self {
            program: Glob::new(&name, Some('/')),
            words,
            options,
            plain,
            open,
        })
    }

    /// The program, when it is one and no pattern.
    pub(crate) fn program(&self) -> Option<&str> {
        self.program.literal()
    }

    /// Whether an allow rule covers this segment, which is one of those that run for certain.
    pub(crate) fn covers(&self, segment: &Segment) -> bool {
        let args = &segment.args;
        let Value::Known(name) = &segment.program else {
            return false;
        };
        if !self.program.matches(name) || args.len() < self.words.len() {
            return false;
        }
        let (fixed, further) = args.split_at(self.words.len());
        let known = |arg: &Value| matches!(arg, Value::Known(_));
        let same = |(glob, arg): (&Glob, &Value)| match arg {
            Value::Known(text) => glob.matches(text),
            Value::Unknown => false,
        };
        self.words.iter().zip(fixed).all(same)
            && (self.open || further.is_empty())
            && further.iter().all(known)
    }

    /// Whether a rule that denies or asks is about this segment.
    pub(crate) fn touches(&self, segment: &Segment) -> bool {
        let wrapped = || {
            let names = &segment.through;
            (0..names.len()).any(|at| match through(&names[at..], segment).split_first() {
                Some((Value::Known(name), args)) => self.is_named(name) && self.touches_args(args),
                Some((Value::Unknown, _)) | None => false,
            })
        };
        let named = match &segment.program {
            Value::Known(name) => self.is_named(name) && self.touches_args(&segment.args),
            Value::Unknown => {
                // It may hold arguments beside the name.
                let args: Vec<_> = std::iter::once(Value::Unknown)
                    .chain(segment.args.iter().cloned())
                    .collect();
                self.touches_args(&args)
            }
        };
        named || wrapped()
    }

    /// Whatever its directory, for a rule that denies or asks.
    fn is_named(&self, name: &str) -> bool {
        self.program.matches(name) || self.program.matches(base(name))
    }

    fn touches_args(&self, args: &[Value]) -> bool {
        self.options.iter().all(|it| has_option(it, args)) && self.in_order(args)
    }

    /// Walks the arguments with the set of how many words of the glob are behind.
    fn in_order(&self, args: &[Value]) -> bool {
        let plain = &self.plain;
        let end = plain.len();
        if end == 0 && self.open {
            return true;
        }
        let mut now = vec![false; end + 1];
        now[0] = true;
        let mut after_option = false;
        for arg in args {
            if self.open && now[end] {
                return true;
            }
            let mut next = vec![false; end + 1];
            let text = match arg {
                Value::Known(text) => text,
                Value::Unknown => {
                    // It may be any number of words, options among them.
                    let first = now.iter().position(|on| *on).unwrap_or(end);
                    next[first..].fill(true);
                    (now, after_option) = (next, true);
                    continue;
                }
            };
            let option = text.len() > 1 && text.starts_with('-');
            for (at, _) in now.iter().enumerate().filter(|(_, on)| **on) {
                if plain.get(at).is_some_and(|glob| glob.matches(text)) {
                    next[at + 1] = true;
                }
                if option || after_option {
                    next[at] = true;
                }
            }
            if !next.contains(&true) {
                return false;
            }
            (now, after_option) = (next, option);
        }
        now[end]
    }
}

impl Segment {
    /// Only plain wrappers, shells and runners such as `uv run` are around it.
    pub(crate) fn is_plainly_run(&self) -> bool {
        let plain = |it: &String| is_transparent(it) || is_runner(it);
        self.through.iter().all(plain)
    }
}

/// Fetchers and runners that are one program, and those with a verb, which are several words.
fn is_runner(spelled: &str) -> bool {
    spelled.contains(' ') || matches!(spelled, "npx" | "uvx" | "bunx")
}

/// The words of a segment with those of its wrappers before them.
fn through(names: &[String], segment: &Segment) -> Vec<Value> {
    let words = names.iter().flat_map(|it| it.split(' '));
    words
        .map(|it| Value::Known(it.to_owned()))
        .chain([segment.program.clone()])
        .chain(segment.args.iter().cloned())
        .collect()
}

fn has_option(glob: &Glob, args: &[Value]) -> bool {
    let wanted = glob.text();
    let cluster = |text: &str| text.starts_with('-') && !text.starts_with("--");
    let whole = |arg: &Value| match arg {
        Value::Unknown => true,
        Value::Known(text) => {
            glob.matches(text) || text.split_once('=').is_some_and(|it| glob.matches(it.0))
        }
    };
    if args.iter().any(whole) {
        return true;
    }
    if !cluster(wanted) || wanted.contains(['*', '?']) {
        return false;
    }
    let given = |letter: char| {
        args.iter().any(|arg| match arg {
            Value::Known(text) => cluster(text) && text.contains(letter),
            Value::Unknown => true,
        })
    };
    wanted.len() > 1 && wanted.chars().skip(1).all(given)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(line: &str) -> Segment {
        let value = |word: &str| match word.starts_with('$') {
            true => Value::Unknown,
            false => Value::Known(word.to_owned()),
        };
        let mut words = line.split(' ').map(value);
        let first = match words.next() {
            Some(Value::Known(name)) => Value::Known(program(&name, "/workspace/work")),
            _ => Value::Unknown,
        };
        Segment {
            program: first,
            args: words.collect(),
            through: Vec::new(),
            touches_files: false,
            source: line.to_owned(),
            at: (1, 1),
        }
    }

    fn glob(text: &str) -> CommandGlob {
        CommandGlob::new(text).unwrap()
    }

    #[test]
    fn allow_is_literal() {
        for (pattern, line, expected) in [
            ("git status", "git status", true),
            ("git status", "git status -s", false),
            ("git status *", "git status", true),
            ("git status *", "git status -s .", true),
            ("git status *", "git -C / status", false),
            ("git status *", "git status $X", false),
            ("git", "git push", true),
            ("git *", "git", true),
            ("git *", "/usr/bin/git push", true),
            ("/usr/bin/git *", "git push", true),
            ("git *", "/tmp/git push", false),
            ("git *", "./git push", false),
            ("/opt/*/bin/tool", "/opt/a/bin/tool x", true),
            ("/opt/*/bin/tool", "/opt/a/b/bin/tool", false),
            ("npm run test:*", "npm run test:unit", true),
            ("npm run test:*", "npm run deploy", false),
            ("git *", "$X push", false),
            ("cat ?.txt", "cat a.txt", true),
            ("cat ?.txt", "cat ab.txt", false),
        ] {
            assert_eq!(
                glob(pattern).covers(&segment(line)),
                expected,
                "{pattern} {line}"
            );
        }
    }

    #[test]
    fn deny_looks_past_options() {
        for (pattern, line, expected) in [
            ("git push *", "git push origin", true),
            ("git push *", "git -C . push", true),
            ("git push *", "git --no-pager -c a=b push x", true),
            ("git push *", "git commit -m push", false),
            ("git push *", "git log", false),
            ("git push *", "git $X", true),
            ("git push *", "$X", true),
            ("git push *", "$X push", true),
            ("rm", "rm -rf /", true),
            ("rm -rf *", "rm -f -r x", true),
            ("rm -rf *", "rm -fr x", true),
            ("rm -rf *", "rm x -rfv", true),
            ("rm -rf *", "rm -r x", false),
            ("rm -rf /", "rm -rf /", true),
            ("rm -rf /", "rm -rf / --no-preserve-root", true),
            ("rm -rf /", "rm -rf x", false),
            ("git push --force *", "git push origin --force", true),
            ("git push --force *", "git push --force=yes", true),
            ("git push --force *", "git push", false),
            ("git push", "git push origin", false),
            ("rm", "/tmp/rm x", true),
            ("rm", "./rm x", true),
            ("rm", "./rm-all", false),
            ("/opt/rm", "/tmp/rm x", false),
            ("r*", "/tmp/rm x", true),
        ] {
            assert_eq!(
                glob(pattern).touches(&segment(line)),
                expected,
                "{pattern} {line}"
            );
        }
    }

    #[test]
    fn wrappers_do_not_hide_and_do_not_lend() {
        let mut wrapped = segment("ls -l");
        for (through, plainly) in [
            (&["sudo"][..], false),
            (&["nice", "env", "sh"], true),
            (&["nice", "uv run"], true),
            (&["npx"], true),
            (&["uv run", "sudo"], false),
            (&["busybox", "sh"], false),
            (&["flock"], false),
        ] {
            wrapped.through = through.iter().map(|it| (*it).to_owned()).collect();
            assert_eq!(wrapped.is_plainly_run(), plainly, "{through:?}");
            assert!(glob("ls").touches(&wrapped));
            assert!(glob(&format!("{} ls *", through.join(" "))).touches(&wrapped));
        }
    }
}
