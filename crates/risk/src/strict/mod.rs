//! What a program runs, where that can be told for certain: the same words in dash and in bash, each
//! known before it starts. What this reader does not accept is a doubt, never a guess. The reader
//! in `shell` takes in more, for rules that deny or ask, which must find all that may run.

mod grammar;
mod wrapper;

use glovebox_model::{ByteString, Program};

use crate::command::usual_name;
use crate::outline::{COMMANDS, DEPTH, excerpt};

/// Why it cannot be told what a program runs: a short phrase for people, with the part it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    pub why: String,
    pub source: String,
}

impl Doubt {
    fn new(why: &str) -> Self {
        Self::at(why, "")
    }

    pub(crate) fn at(why: &str, source: &str) -> Self {
        Self {
            why: why.to_owned(),
            source: excerpt(source),
        }
    }
}

/// One command that runs for certain, its wrappers and shells taken off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Never empty. The program is its plain name where it lies among the system's programs, and
    /// otherwise the path as written.
    pub words: Vec<String>,
    /// The wrappers and shells around it, the outermost first: `timeout`, `sh`.
    pub through: Vec<String>,
    /// The script that it names to a shell, as written.
    pub script: Option<String>,
    /// As written, cut to a bounded length.
    pub source: String,
}

impl Step {
    pub(crate) fn name(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }
}

/// Shells that this grammar is about.
const SHELLS: [&str; 3] = ["sh", "dash", "bash"];

/// Parts of the shells that evaluate their words again, change what later words mean, or run what
/// is not written. Those that are left out do nothing of that.
const UNTOLD: [&str; 44] = [
    ".",
    "alias",
    "bg",
    "bind",
    "break",
    "builtin",
    "caller",
    "chdir",
    "compgen",
    "complete",
    "compopt",
    "continue",
    "declare",
    "disown",
    "enable",
    "eval",
    "exec",
    "export",
    "fc",
    "fg",
    "getopts",
    "hash",
    "history",
    "jobs",
    "let",
    "local",
    "logout",
    "mapfile",
    "popd",
    "pushd",
    "read",
    "readarray",
    "readonly",
    "return",
    "shift",
    "shopt",
    "source",
    "suspend",
    "trap",
    "typeset",
    "ulimit",
    "unalias",
    "unset",
    "wait",
];

/// Whether a wrapper or a shell only runs what is behind it, where its options are plain.
pub fn is_transparent(name: &str) -> bool {
    SHELLS.contains(&name) || wrapper::is_one(name)
}

/// The commands of a program, if all of them can be told for certain.
pub fn steps(program: &Program) -> Result<Vec<Step>, Doubt> {
    let argv = program.argv();
    let text = |it: &ByteString| std::str::from_utf8(it.as_bytes()).map(str::to_owned);
    let words: Result<Vec<String>, _> = argv.iter().map(text).collect();
    let Ok(words) = words else {
        return Err(Doubt::new("a word is not UTF-8"));
    };
    let mut found = Vec::new();
    let source = excerpt(&words.join(" "));
    resolve(words, &[], Shell::Plain, &source, &mut found)?;
    Ok(found)
}

/// The same for the contents of a script.
pub(crate) fn script_steps(source: &[u8]) -> Result<Vec<Step>, Doubt> {
    let Ok(text) = std::str::from_utf8(source) else {
        return Err(Doubt::new("the script is not UTF-8"));
    };
    let mut found = Vec::new();
    script(text, &[], Shell::Plain, &mut found)?;
    Ok(found)
}

/// A login shell runs files of the home: the one as which the program starts finds it empty, or as
/// others left it, which is the caller's business; one that starts later finds what was put there, and
/// so does one that leaves by `exit`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shell {
    Plain,
    Login,
}

fn script(
    text: &str,
    through: &[String],
    within: Shell,
    found: &mut Vec<Step>,
) -> Result<(), Doubt> {
    if through.len() > DEPTH {
        return Err(Doubt::new("scripts nest too deeply"));
    }
    for line in grammar::lines(text)? {
        resolve(line.words, through, within, &line.source, found)?;
    }
    Ok(())
}

/// The plain name of a program of the system; a path counts as it is written. One with `..` in it may
/// lead through a link to somewhere else than its text says.
fn named(word: &str) -> Option<&str> {
    if !word.contains('/') {
        return Some(word);
    }
    let parts = || word.split('/').skip(1);
    let plain = word.starts_with('/') && parts().all(|it| !matches!(it, "" | "." | ".."));
    match usual_name(word).filter(|_| plain) {
        Some(name) => Some(name),
        None if word.split('/').any(|it| it == "..") => None,
        None => Some(word),
    }
}

fn resolve(
    mut words: Vec<String>,
    through: &[String],
    within: Shell,
    source: &str,
    found: &mut Vec<Step>,
) -> Result<(), Doubt> {
    let mut through = through.to_vec();
    loop {
        if found.len() >= COMMANDS || through.len() > DEPTH {
            return Err(Doubt::new("it holds too many commands"));
        }
        let Some(first) = words.first_mut() else {
            return Err(Doubt::at("there is no command", source));
        };
        let Some(name) = named(first).map(str::to_owned) else {
            return Err(Doubt::at("the path of a program goes through `..`", source));
        };
        first.clone_from(&name);
        if !grammar::is_name(&name) {
            return Err(Doubt::at(
                "it is more than a plain list of commands",
                source,
            ));
        }
        if UNTOLD.contains(&name.as_str()) {
            let why = format!("`{name}` changes what later words mean, or evaluates its own");
            return Err(Doubt::at(&why, source));
        }
        if name == "exit" && within == Shell::Login {
            let why = "a login shell that is left by `exit` runs a file of the home";
            return Err(Doubt::at(why, source));
        }
        let leaf = |words: Vec<String>, script| Step {
            words,
            through: through.clone(),
            script,
            source: source.to_owned(),
        };
        if SHELLS.contains(&name.as_str()) {
            let (given, kind) = shell(&words, source)?;
            let is_first =
                found.is_empty() && !through.iter().any(|it| SHELLS.contains(&it.as_str()));
            if kind == Shell::Login && !is_first {
                let why =
                    "a login shell runs files of the home, which may have been put there before";
                return Err(Doubt::at(why, source));
            }
            match given {
                Given::Text(text) => {
                    through.push(name);
                    return script(&text, &through, kind, found);
                }
                Given::File(path) => found.push(leaf(words, Some(path))),
            }
            return Ok(());
        }
        match wrapper::behind(&name, &words) {
            None => {
                found.push(leaf(words, None));
                return Ok(());
            }
            Some(Err(option)) => {
                let why = format!("`{option}` of `{name}` is not among its plain options");
                return Err(Doubt::at(&why, source));
            }
            Some(Ok(at)) => {
                through.push(name);
                words.drain(..at);
            }
        }
    }
}

enum Given {
    /// Behind `-c`.
    Text(String),
    File(String),
}

fn shell(words: &[String], source: &str) -> Result<(Given, Shell), Doubt> {
    let (mut given, mut kind) = (false, Shell::Plain);
    let mut rest = words.iter().skip(1);
    while let Some(word) = rest.next() {
        match word.as_str() {
            "--login" => {
                kind = Shell::Login;
                continue;
            }
            "--norc" | "--noprofile" => continue,
            _ => {}
        }
        let Some(letters) = word.strip_prefix('-').filter(|it| !it.is_empty()) else {
            // `+x` and `-` are options too.
            if word.is_empty() || word.starts_with(['-', '+']) {
                return Err(Doubt::at("an option of the shell is not plain", source));
            }
            let given = match given {
                true => Given::Text(word.clone()),
                false => Given::File(word.clone()),
            };
            return Ok((given, kind));
        };
        for letter in letters.chars() {
            match letter {
                'c' => given = true,
                'l' => kind = Shell::Login,
                'e' | 'u' | 'x' => {}
                'o' if rest.next().is_some_and(|it| is_plain_setting(it)) => {}
                _ => return Err(Doubt::at("an option of the shell is not plain", source)),
            }
        }
    }
    Err(Doubt::at(
        "a shell reads its commands from its input",
        source,
    ))
}

/// Names behind `-o` that leave the commands of a script the same.
pub(crate) fn is_plain_setting(name: &str) -> bool {
    matches!(name, "errexit" | "nounset" | "pipefail" | "xtrace")
}
