//! Scripts of the workspace, and among the files that come with a call, that a program runs: a person
//! who is asked about `python3 fix.py` says yes to what is in that file now. What is there when it
//! starts must be the same.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};

use glovebox_model::{ByteString, Call, Input, Program, Result, RiskSignal, ScriptRef, SkillRef};
use glovebox_risk::{Command, Language, Reading, Word};
use glovebox_workspace::{Dir, Kind, RelPath};
use sha2::{Digest, Sha256};

use super::binding::changed;
use super::named::{Reader, interpreter, named};
use crate::path::working_directory;

/// How much of a script is looked at for signs of risk.
const LOOKED_AT: u64 = 1 << 20;
/// Nobody writes a script this long; what is longer cannot be bound.
const LONGEST: u64 = 8 << 20;
/// So many are bound.
const MOST: usize = 16;
pub(super) const WORK: &str = "/workspace/work";
pub(super) const INPUTS: &str = "/workspace/inputs";
/// The digest of what could not be read: whoever is asked sees that nothing holds it.
const UNBOUND: &str = "unbound";

/// A script as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Script {
    pub(crate) path: String,
    /// As what it is run; `None` when nobody can read it so.
    languages: Vec<Option<Language>>,
    /// Its beginning.
    source: Vec<u8>,
    digest: String,
}

/// Where the files lie that a program may name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shelves<'a> {
    /// None for scratch.
    pub(crate) work: Option<&'a Dir>,
    /// These very bytes are placed before it starts, and it cannot change them.
    pub(crate) inputs: &'a [Input],
}

/// A script with all that it holds.
#[derive(Debug)]
pub(super) struct Found {
    /// Its clean path in the sandbox.
    pub(super) path: String,
    /// In the workspace, if it lies there.
    pub(super) at: Option<RelPath>,
    pub(super) script: Script,
}

impl Shelves<'_> {
    /// By its clean path in the sandbox; `None` when it is not there, too long or cannot be read.
    pub(super) fn whole(&self, path: &str) -> Option<Found> {
        let script = self.script(path, Reader::Whoever)?;
        let is_whole = script.digest != UNBOUND && (script.source.len() as u64) < LOOKED_AT;
        is_whole.then(|| Found {
            path: path.to_owned(),
            at: below(WORK, path).and_then(|it| RelPath::new(it.as_bytes()).ok()),
            script,
        })
    }

    /// By its clean path in the sandbox; `None` when there is no such file.
    fn script(&self, path: &str, reader: Reader) -> Option<Script> {
        if let Some(below) = below(INPUTS, path) {
            let input = self.inputs.iter().find(|it| is_at(it, below))?;
            return Some(Script::of(path.to_owned(), &input.content[..], reader));
        }
        Script::read(self.work?, below(WORK, path)?.to_owned(), reader)
    }
}

fn is_at(input: &Input, path: &str) -> bool {
    let parts = |path| {
        let parts = <[u8]>::split(path, |byte| *byte == b'/');
        parts.filter(|part| !matches!(part, [] | [b'.']))
    };
    parts(input.path.as_bytes()).eq(parts(path.as_bytes()))
}

impl Script {
    /// `None` when there is no such file.
    fn read(work: &Dir, path: String, reader: Reader) -> Option<Self> {
        let relative = RelPath::new(path.as_bytes()).ok()?;
        match work.lstat(&relative) {
            Err(_) => return None,
            Ok(stat) if stat.kind == Kind::Directory => return None,
            Ok(_) => {}
        }
        Some(match work.open_file(&relative) {
            Ok((file, _)) => Self::of(path, file, reader),
            Err(_) => Self::unbound(path),
        })
    }

    fn of(path: String, contents: impl Read, reader: Reader) -> Self {
        let Some((source, digest)) = digested(contents) else {
            return Self::unbound(path);
        };
        Self {
            languages: languages(&path, &source, reader),
            path,
            source,
            digest,
        }
    }

    fn unbound(path: String) -> Self {
        Self {
            path,
            languages: vec![None],
            source: Vec::new(),
            digest: UNBOUND.to_owned(),
        }
    }

    /// Its beginning.
    pub(super) fn source(&self) -> &[u8] {
        &self.source
    }

    pub(super) fn into_source(self) -> Vec<u8> {
        self.source
    }

    /// What it would run, as whatever it is run; `None` where nobody can tell.
    pub(crate) fn readings(&self) -> impl Iterator<Item = Option<Reading>> {
        self.languages.iter().map(|language| {
            let language = language.filter(|_| self.digest != UNBOUND)?;
            let code = ByteString::new(self.source.clone())?;
            Some(match language {
                Language::Shell => glovebox_risk::read_script(&self.source),
                Language::Python => glovebox_risk::read(&Program::Python { code }),
                Language::Javascript => glovebox_risk::read(&Program::Javascript { code }),
            })
        })
    }

    /// It is run once more, as something else.
    fn also(&mut self, reader: Reader) {
        for language in languages(&self.path, &self.source, reader) {
            if !self.languages.contains(&language) {
                self.languages.push(language);
            }
        }
    }

    pub(crate) fn signals(&self) -> Vec<RiskSignal> {
        let known = self.languages.iter().flatten();
        let mut signals: Vec<RiskSignal> = known
            .flat_map(|language| glovebox_risk::code_signals(*language, &self.source))
            .collect();
        for signal in &mut signals {
            let at = signal.at.take();
            signal.at = Some(match at {
                Some(at) => format!("{} {at}", self.path),
                None => self.path.clone(),
            });
        }
        signals
    }

    /// Such a path says which skill with which digest.
    pub(crate) fn is_of(&self, skill: &SkillRef) -> bool {
        let relative = below(INPUTS, &self.path);
        let own = relative.and_then(|it| it.strip_prefix(&skill.directory()));
        own.is_some_and(|it| it.starts_with('/'))
    }

    pub(crate) fn bound(&self) -> ScriptRef {
        ScriptRef {
            path: self.path.clone(),
            digest: self.digest.clone(),
        }
    }
}

/// Every file on the shelves that is named to an interpreter, and every command that is a file
/// itself. Where they are looked for depends on `cd`: so every directory that is entered counts.
pub(crate) fn scripts(program: &Program, cwd: &str, shelves: Shelves<'_>) -> Vec<Script> {
    let reading = glovebox_risk::read(program);
    let places = places(cwd, &reading.commands);
    // Where in `found` each path is that was looked at, if it is there at all.
    let mut looked_at: HashMap<String, Option<usize>> = HashMap::new();
    let mut found: Vec<Script> = Vec::new();
    for (word, reader) in reading.commands.iter().flat_map(named) {
        for path in places.iter().filter_map(|place| clean(place, &word)) {
            if let Some(known) = looked_at.get(&path) {
                if let Some(script) = known.and_then(|at| found.get_mut(at)) {
                    script.also(reader);
                }
                continue;
            }
            let script = shelves.script(&path, reader);
            looked_at.insert(path, script.as_ref().map(|_| found.len()));
            let Some(script) = script else {
                continue;
            };
            if found.len() >= MOST {
                found.push(Script::unbound("more scripts".to_owned()));
                return found;
            }
            found.push(script);
        }
    }
    found
}

/// Where a relative path may begin.
fn places(cwd: &str, commands: &[Command]) -> Vec<String> {
    let mut places = vec![cwd.to_owned()];
    for command in commands {
        if let [Word::Known(name), rest @ ..] = command.words.as_slice()
            && matches!(name.as_str(), "cd" | "pushd")
        {
            let entered = rest.iter().filter_map(|word| match word {
                Word::Known(path) if !path.starts_with('-') => Some(join(cwd, path)),
                Word::Known(_) | Word::Unknown(_) => None,
            });
            places.extend(entered);
        }
    }
    places.truncate(MOST);
    places
}

fn join(cwd: &str, path: &str) -> String {
    match path.starts_with('/') {
        true => path.to_owned(),
        false => format!("{cwd}/{path}"),
    }
}

/// Its beginning and the digest of all of it; `None` when it is too long or cannot be read.
fn digested(mut contents: impl Read) -> Option<(Vec<u8>, String)> {
    let mut source = Vec::new();
    let mut beginning = contents.by_ref().take(LOOKED_AT);
    beginning.read_to_end(&mut source).ok()?;
    let mut hasher = Sha256::new_with_prefix(&source);
    let mut rest = BufReader::with_capacity(64 << 10, contents.take(LONGEST));
    let mut length = 0;
    loop {
        let read = rest.fill_buf().ok()?;
        if read.is_empty() {
            break;
        }
        hasher.update(read);
        let count = read.len();
        length += count as u64;
        rest.consume(count);
    }
    let digest = hasher.finalize();
    let digest = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    (length < LONGEST).then_some((source, digest))
}

/// The same for a call, as they are at this moment.
pub(crate) fn scripts_now(call: &Call, work: &Dir) -> Vec<ScriptRef> {
    let Ok(cwd) = working_directory(call.cwd.as_ref()) else {
        return Vec::new();
    };
    let shelves = Shelves {
        work: Some(work),
        inputs: &call.inputs,
    };
    let found = scripts(&call.program, &cwd.display(), shelves);
    found.iter().map(Script::bound).collect()
}

/// Refuses what people have not seen.
pub(crate) fn check_scripts(bound: &[ScriptRef], now: &[ScriptRef]) -> Result<()> {
    match bound == now {
        true => Ok(()),
        false => Err(changed(bound, now)),
    }
}

/// As what a file is run; `None` for what nobody here can read. Where the file says that it is
/// something else than its interpreter reads, it may be both.
fn languages(path: &str, source: &[u8], reader: Reader) -> Vec<Option<Language>> {
    let first = source.split(|byte| *byte == b'\n').next().unwrap_or(source);
    let first = String::from_utf8_lossy(first);
    let line = first.strip_prefix("#!");
    let own = match line {
        Some(line) => of_line(line),
        None => of_name(path),
    };
    let mut languages = match (reader, line) {
        // Whoever cannot start it takes it for a script of the shell.
        (Reader::Kernel, None) if own.is_some() => vec![own, Some(Language::Shell)],
        (Reader::Kernel | Reader::Whoever, _) => vec![own],
        (Reader::Interpreter(language), _) => vec![language, own.or(language)],
    };
    languages.dedup();
    languages
}

/// `/bin/sh -e`, `/usr/bin/env python3`.
fn of_line(line: &str) -> Option<Language> {
    let mut words = line.split_whitespace();
    let mut name = words.next()?;
    if name.rsplit('/').next() == Some("env") {
        name = words.find(|it| *it != "-S")?;
    }
    interpreter(name).flatten()
}

fn of_name(path: &str) -> Option<Language> {
    match path.rsplit_once('.')?.1 {
        "py" | "pyw" => Some(Language::Python),
        "js" | "mjs" | "cjs" | "jsx" | "ts" | "mts" | "cts" | "tsx" => Some(Language::Javascript),
        "sh" | "bash" => Some(Language::Shell),
        _ => None,
    }
}

/// The whole path in the sandbox; `None` for what climbs out of it.
pub(super) fn clean(cwd: &str, path: &str) -> Option<String> {
    let whole = join(cwd, path);
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(format!("/{}", parts.join("/")))
}

pub(super) fn below<'p>(directory: &str, path: &'p str) -> Option<&'p str> {
    let relative = path.strip_prefix(directory)?.strip_prefix('/')?;
    (!relative.is_empty()).then_some(relative)
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_model::ByteString;

    fn program(words: &[&str]) -> Program {
        let text = |word: &str| ByteString::try_from(word).unwrap();
        Program::Argv {
            command: text(words[0]),
            args: words[1..].iter().copied().map(text).collect(),
        }
    }

    fn found(words: &[&str]) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        for name in ["sub", "pkg"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        for name in [
            "a.py",
            "sub/b.sh",
            "run",
            "pkg/__init__.py",
            "pkg/__main__.py",
            "Makefile",
            "p.awk",
        ] {
            std::fs::write(dir.path().join(name), "x").unwrap();
        }
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link")).unwrap();
        let work = Dir::open_trusted(dir.path()).unwrap();
        let inputs = ["tool.py", "./deep//b.sh"].map(|path| Input {
            path: ByteString::try_from(path).unwrap(),
            content: b"x".to_vec(),
        });
        let shelves = Shelves {
            work: Some(&work),
            inputs: &inputs,
        };
        let scripts = scripts(&program(words), WORK, shelves);
        scripts.into_iter().map(|it| it.path).collect()
    }

    #[test]
    fn the_file_that_is_run_is_found_behind_interpreters_and_wrappers() {
        for (words, expected) in [
            (&["python3", "a.py"][..], "a.py"),
            (&["python3", "-u", "-W", "error", "./a.py", "x"], "a.py"),
            (&["python3", "-O", "a.py"], "a.py"),
            (&["bash", "-e", "sub/b.sh"], "sub/b.sh"),
            (&["node", "-r", "./hook", "a.py"], "a.py"),
            (&["sh", "-c", "cd sub && bash b.sh"], "sub/b.sh"),
            (&["python3", "link"], "link"),
            (&["env", "A=1", "nice", "python3.11", "a.py"], "a.py"),
            (&["bash", "sub/../sub/b.sh"], "sub/b.sh"),
            (&["./run"], "run"),
            (&["/workspace/work/run"], "run"),
            (
                &["python3", "/workspace/inputs/tool.py"],
                "/workspace/inputs/tool.py",
            ),
            (
                &["sh", "-c", "cd ../inputs/deep && bash ./b.sh"],
                "/workspace/inputs/deep/b.sh",
            ),
            (
                &["/workspace/inputs/./tool.py"],
                "/workspace/inputs/tool.py",
            ),
            (
                &["sh", "-c", "cd sub; bash /workspace/work/sub/b.sh"],
                "sub/b.sh",
            ),
        ] {
            assert_eq!(found(words), [expected], "{words:?}");
        }
    }

    #[test]
    fn what_is_run_without_being_named_is_found_too() {
        let package = &["pkg/__main__.py", "pkg/__init__.py"][..];
        for (words, expected) in [
            (&["python3", "-m", "a"][..], &["a.py"][..]),
            (&["python3", "-Im", "a", "x"], &["a.py"]),
            (&["python3", "-ma"], &["a.py"]),
            (&["python3", "-m", "pkg"], package),
            (&["python3", "-m", "pkg.other"], &["pkg/__init__.py"]),
            (&["python3", "pkg"], &["pkg/__main__.py"]),
            (&["sh", "-c", "cd pkg; python3 ."], &["pkg/__main__.py"]),
            (&["make"], &["Makefile"]),
            (&["make", "-C", "pkg/..", "all"], &["Makefile"]),
            (&["make", "-f", "run"], &["run", "Makefile"]),
            (&["awk", "-f", "p.awk", "a.py"], &["p.awk"]),
            (&["gawk", "--fi=p.awk"], &["p.awk"]),
            (&["sed", "-nfrun", "a.py"], &["run"]),
            (&["sed", "-n", "1p", "a.py"], &[]),
        ] {
            assert_eq!(found(words), expected, "{words:?}");
        }
    }

    #[test]
    fn what_is_no_file_of_the_workspace_is_no_script() {
        for words in [
            &["python3", "../../etc/passwd"][..],
            &["ls", "a.py"],
            &["/bin/ls"],
            &["python3", "missing.py"],
            &["python3", "/workspace/inputs/missing.py"],
            &["python3", "/workspace/inputs"],
        ] {
            assert_eq!(found(words), Vec::<String>::new(), "{words:?}");
        }
    }

    #[test]
    fn another_content_is_another_digest_however_far_in() {
        let dir = tempfile::tempdir().unwrap();
        let work = Dir::open_trusted(dir.path()).unwrap();
        let bound = |last: u8| {
            let mut source = vec![b'#'; usize::try_from(LOOKED_AT + 10).unwrap()];
            source.push(last);
            std::fs::write(dir.path().join("a"), source).unwrap();
            let reader = Reader::Kernel;
            Script::read(&work, "a".to_owned(), reader).unwrap().bound()
        };
        assert_eq!(bound(1), bound(1));
        assert_ne!(bound(1), bound(2));
    }
}
