//! What a program would do, read before it runs: the commands in it, and signals of risk with
//! their positions. A hint: isolation is the boundary. Nothing here reads a clock, a file or the
//! network.

mod builtin;
mod carrier;
mod code;
mod command;
mod environment;
mod foreign;
mod interpreter;
mod literal;
mod outline;
mod resolve;
mod runner;
mod runs;
mod script_signals;
mod shell;
mod signal;
mod strict;
mod tame;
mod wrapper;
mod wrapper_table;

pub use command::{
    Blind, Command, Direction, Files, Position, Reading, Redirect, Unclear, Word, usual_name,
};
pub use environment::{changes_meaning, may_change_what_runs, variable_signal};
pub use runs::{Runs, only_reads, runs, runs_script};
pub use signal::{SignalKind, catalogue};
pub use strict::{Doubt, Step, is_transparent, steps};

use glovebox_model::{ByteString, Program, RiskSignal};

use outline::{Origin, Outline, Tongue};
use resolve::Simple;
use shell::{Place, Text};
use signal::{Signals, TOO_LARGE, UNREADABLE};

/// A language whose programs are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    Shell,
    Python,
    /// TypeScript too.
    Javascript,
}

const START: Position = Position { line: 1, column: 1 };

/// The commands of a shell script or of an argument vector. Code in another language has none but
/// its interpreter, which is blind.
pub fn read(program: &Program) -> Reading {
    outline_of(program).into_reading()
}

/// The same for the contents of a script file, which `sh` may run as well as bash.
pub fn read_script(source: &[u8]) -> Reading {
    script_outline(source, false).into_reading()
}

/// Named signals, each with a tier and its place; none means that nothing was found.
pub fn signals(program: &Program) -> Vec<RiskSignal> {
    let mut found = Signals::default();
    match program {
        Program::Python { code } => return code_signals(Language::Python, code.as_bytes()),
        Program::Javascript { code } => return code_signals(Language::Javascript, code.as_bytes()),
        Program::Argv { .. } | Program::Shell { .. } => {
            script_signals::of(&outline_of(program), &mut found);
        }
    }
    found.list()
}

/// The same for a source by itself: a script file, say.
pub fn code_signals(language: Language, source: &[u8]) -> Vec<RiskSignal> {
    let mut found = Signals::default();
    let tongue = match language {
        Language::Shell => {
            script_signals::of(&script_outline(source, false), &mut found);
            return found.list();
        }
        Language::Python => Tongue::Python,
        Language::Javascript => Tongue::Javascript,
    };
    // Broken bytes become signs that no program has; the rest is still looked at.
    let text = String::from_utf8_lossy(source);
    if matches!(text, std::borrow::Cow::Owned(_)) {
        found.add(UNREADABLE, START, Origin::Program);
    }
    if source.len() > outline::SOURCE_BYTES {
        found.add(TOO_LARGE, START, Origin::Program);
    } else {
        code::read(tongue, &text, None, Origin::Program, &mut found);
    }
    found.list()
}

fn outline_of(program: &Program) -> Outline {
    match program {
        Program::Shell { script } => script_outline(script.as_bytes(), true),
        Program::Argv { command, args } => argv_outline(command, args),
        Program::Python { .. } | Program::Javascript { .. } => {
            let argv = program.argv();
            match argv.split_first() {
                Some((command, args)) => argv_outline(command, args),
                None => Outline::default(),
            }
        }
    }
}

/// `bash`: it is bash that reads it, and no other shell.
fn script_outline(source: &[u8], bash: bool) -> Outline {
    let mut outline = Outline::default();
    let place = Place {
        bash,
        ..Place::top(Origin::Program)
    };
    match std::str::from_utf8(source) {
        Ok(text) => shell::script(text, place, &mut outline),
        Err(_) => {
            // Nothing can be trusted in it, but what is there is named.
            outline.blind(Unclear::Syntax, "not UTF-8", START, Origin::Program);
            let text = String::from_utf8_lossy(source);
            shell::script(&text, place, &mut outline);
        }
    }
    outline
}

fn argv_outline(command: &ByteString, args: &[ByteString]) -> Outline {
    let mut outline = Outline::default();
    let all = || std::iter::once(command).chain(args);
    let size: usize = all().map(|it| it.as_bytes().len()).sum();
    if size > outline::SOURCE_BYTES {
        outline.overflow(START, Origin::Program);
        return outline;
    }
    let word = |(at, it): (usize, &ByteString)| Text {
        word: match std::str::from_utf8(it.as_bytes()) {
            Ok(text) => Word::Known(text.to_owned()),
            Err(_) => Word::Unknown(it.display()),
        },
        at: START,
        argument: Some(at),
    };
    let words: Vec<Text> = all().enumerate().map(word).collect();
    let shown: Vec<String> = all().map(ByteString::display).collect();
    let simple = Simple {
        words,
        redirects: Vec::new(),
        here_string: None,
        source: outline::excerpt(&shown.join(" ")),
        at: START,
        place: Place::top(Origin::Program),
    };
    resolve::resolve(simple, &mut outline);
    outline
}
