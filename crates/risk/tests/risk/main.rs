//! Reading programs and their signals.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod against_bash;
mod against_shells;
mod invariants;
mod reading;
mod signals_code;
mod signals_script;
mod spellings;

use glovebox_model::{ByteString, Program, RiskSignal, Tier};
use glovebox_risk::{Reading, Word};

fn bytes(text: &str) -> ByteString {
    ByteString::new(text).unwrap()
}

fn shell(script: &str) -> Program {
    Program::Shell {
        script: bytes(script),
    }
}

fn argv(words: &[&str]) -> Program {
    let (command, args) = words.split_first().unwrap();
    Program::Argv {
        command: bytes(command),
        args: args.iter().map(|it| bytes(it)).collect(),
    }
}

/// The words of each command, joined; what is not known in angle brackets.
fn commands(reading: &Reading) -> Vec<String> {
    let word = |it: &Word| match it {
        Word::Known(text) => text.clone(),
        Word::Unknown(text) => format!("<{text}>"),
    };
    let command =
        |it: &glovebox_risk::Command| it.words.iter().map(word).collect::<Vec<_>>().join(" ");
    reading.commands.iter().map(command).collect()
}

fn tier(signals: &[RiskSignal]) -> Tier {
    signals.iter().map(|it| it.tier).max().unwrap_or_default()
}
