//! The commands that a program would run, as they count: wrappers taken off, words unquoted.

/// Where in the source, for people: lines and columns count from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

/// Where a program's directory says nothing more than its name.
const USUAL: [&str; 6] = [
    "/bin",
    "/usr/bin",
    "/usr/local/bin",
    "/sbin",
    "/usr/sbin",
    "/usr/local/sbin",
];

/// The name of a program that lies, by its cleaned absolute path, where programs usually do.
pub fn usual_name(path: &str) -> Option<&str> {
    let (directory, name) = path.rsplit_once('/')?;
    (USUAL.contains(&directory) && !name.is_empty()).then_some(name)
}

/// One word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// Its value is known: quotes are taken away.
    Known(String),
    /// Only the shell knows its value when it runs: a variable, a substitution, a pattern. As written.
    Unknown(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Read,
    Write,
    Append,
}

/// A file that the shell itself opens for a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    pub direction: Direction,
    pub target: Word,
}

impl Redirect {
    /// Nothing is read from or written to a file: `/dev/null`, another stream, the terminal.
    pub fn is_harmless(&self) -> bool {
        match &self.target {
            Word::Known(path) => {
                matches!(
                    path.as_str(),
                    "/dev/null" | "/dev/stdin" | "/dev/stdout" | "/dev/stderr" | "/dev/tty"
                )
            }
            Word::Unknown(_) => false,
        }
    }
}

/// One simple command: one program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Without wrappers: `env A=1 nice git push` counts as `git push`. Never empty.
    pub words: Vec<Word>,
    /// The wrappers that were taken off, the outermost first: `env`, `nice`.
    pub through: Vec<String>,
    pub redirects: Vec<Redirect>,
    /// A wrapper starts it in another directory or under another root.
    pub moved: bool,
    /// Its standard input is a pipe.
    pub fed: bool,
    /// As written, for people; cut to a bounded length.
    pub source: String,
    pub at: Position,
}

/// Why a part of a program cannot be told in advance. Whoever allows by command must not allow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unclear {
    /// It is not a valid program, or uses what the reader does not know.
    Syntax,
    /// `$(…)`, backquotes, `<(…)`.
    Substitution,
    /// `eval`, `source`, or a script from standard input or a variable.
    Evaluation,
    /// The name of the program itself is not known.
    Name,
    /// `python3 -c …`, `node -e …`, `perl -e …`: a program inside a word.
    Interpreter,
    /// A function or an alias is defined: a known name may mean something else.
    Definition,
    /// `LD_PRELOAD=…`, `PATH=…`, `IFS=…`: a variable that changes what a name means.
    Environment,
    /// It is longer or nests deeper than is looked at.
    TooLarge,
    /// `$'…'`, `[[ a || b ]]`, `&>`: shells read it differently, and which one reads it is not known.
    Dialect,
}

/// A part that cannot be told in advance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blind {
    pub why: Unclear,
    /// Commands may be in it that are not among those that were found. False for a substitution,
    /// whose commands are read, and for code in which nothing was found that could start one.
    pub hides: bool,
    pub source: String,
    pub at: Position,
}

/// Files that code inside a program opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// Texts in it that are, or may be, their names.
    pub names: Vec<String>,
    /// It may open others than these.
    pub others: bool,
    /// The command with the code in it, for people.
    pub source: String,
}

/// All commands of a program in the order in which they stand, at any depth (lists, pipelines,
/// groups, loops, substitutions, `sh -c` strings), and what could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    pub commands: Vec<Command>,
    pub blind: Vec<Blind>,
    /// Of each piece of code in another language that could be read.
    pub files: Vec<Files>,
}
