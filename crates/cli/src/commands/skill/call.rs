//! `glovebox skill run`.

use std::io::{self, Read, Write};

use glovebox_api::SkillAnswer;
use glovebox_model::{Code, Error, Exec, Result, Stage, Status};
use glovebox_skill::{OUTPUT_BYTES_MAX, OUTPUT_FILE, Skill};
use serde_json::{Map, Value};

use crate::args::{Global, RunOptions, SkillRunArgs};
use crate::commands::execute::{skill_here, skill_there, tell_end};
use crate::context::Context;
use crate::exit::Exit;
use crate::render::{self, printable};
use crate::{stdout, workspaces};

/// As much as a server reads.
const INPUTS_MOST: u64 = 4 << 20;

pub(super) fn run(global: &Global, args: SkillRunArgs) -> Result<Exit> {
    refuse_what_is_not_its_own(&args.options)?;
    let context = Context::new(global);
    let all = args.inputs.as_deref().map(read).transpose()?;
    let mut inputs = all.unwrap_or_default();
    let no_wait = args.options.exec.no_wait;
    let answer = match context.server()? {
        Some(remote) => {
            let skill = super::one(&context, &args.id)?;
            give(&mut inputs, &args.given, &skill.inputs)?;
            let prints = skill.outputs.pointer("/properties/stdout").is_some();
            let asked = (args.id.as_str(), inputs);
            (
                skill_there(global, &remote, args.options, asked, prints)?,
                prints,
            )
        }
        None => {
            let skill = context.skills()?.find(&args.id)?;
            give(&mut inputs, &args.given, &skill.manifest().interface.inputs)?;
            let called = skill.call(&inputs)?;
            let prints = skill.prints();
            let exec = skill_here(global, args.options, called, prints)?;
            (Some(answered(&context, &skill, exec)?), prints)
        }
    };
    match answer {
        (Some(answer), prints) => tell(global, &answer, prints, no_wait),
        (None, _) => Ok(Exit::CANCELED),
    }
}

fn tell(global: &Global, answer: &SkillAnswer, prints: bool, no_wait: bool) -> Result<Exit> {
    if global.json {
        stdout::json(answer)?;
    } else {
        if !prints && !answer.output.is_null() {
            let text = serde_json::to_string_pretty(&answer.output).unwrap_or_default();
            stdout::text(&(printable(&text) + "\n"))?;
        }
        // What such a program prints is not shown otherwise, and says why it failed.
        if !prints && answer.status != Status::Succeeded && !answer.exec.stderr.is_empty() {
            render::note(&printable(answer.exec.stderr.trim_end()));
        }
        tell_end(global, &answer.exec);
    }
    let ended = Exit::of_run(&answer.exec, no_wait);
    match &answer.output_error {
        Some(error) if ended == Exit::SUCCESS => {
            if !global.json {
                render::error(error, false);
            }
            Ok(Exit::of_error(error))
        }
        _ => Ok(ended),
    }
}

fn answered(context: &Context<'_>, skill: &Skill, exec: Exec) -> Result<SkillAnswer> {
    let wrote = exec
        .artifacts
        .iter()
        .any(|it| it.path.as_bytes() == OUTPUT_FILE.as_bytes());
    let written = match wrote {
        true => {
            let mut bounded = Bounded(Vec::new());
            let path = workspaces::inside(OUTPUT_FILE.as_ref())?;
            let records = context.some_records()?;
            records.artifact(&exec, &path, &mut bounded)?;
            Some(bounded.0)
        }
        false => None,
    };
    let output = skill.output(&exec, written.as_deref());
    Ok(glovebox_skill::answer(exec, output))
}

/// One byte more than is taken, and no other.
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let most = usize::try_from(OUTPUT_BYTES_MAX).unwrap_or(usize::MAX);
        let left = (most + 1).saturating_sub(self.0.len());
        self.0.extend_from_slice(&bytes[..bytes.len().min(left)]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// `JSON`, `@FILE` or `-`.
fn read(text: &str) -> Result<Map<String, Value>> {
    let failed = |error: &dyn std::fmt::Display| invalid("cannot read `--inputs`").caused_by(error);
    let bounded = |from: &mut dyn Read| {
        let mut text = String::new();
        from.take(INPUTS_MOST)
            .read_to_string(&mut text)
            .map_err(|error| failed(&error))?;
        Ok::<_, Error>(text)
    };
    let text = match text.strip_prefix('@') {
        Some(path) => {
            let mut file = std::fs::File::open(path).map_err(|error| failed(&error))?;
            bounded(&mut file)?
        }
        None if text == "-" => bounded(&mut io::stdin().lock())?,
        None => text.to_owned(),
    };
    serde_json::from_str(&text)
        .map_err(|error| failed(&error).hint("it is a JSON object, such as `{\"script\": \"ls\"}`"))
}

/// `NAME=VALUE`, as the schema says.
fn give(inputs: &mut Map<String, Value>, given: &[String], schema: &Value) -> Result<()> {
    for word in given {
        let Some((name, text)) = word.split_once('=') else {
            // Not shown: it may be a value whose name was forgotten.
            return Err(invalid("an input has no `=`").hint("write `NAME=VALUE`"));
        };
        let property = schema.get("properties").and_then(|it| it.get(name));
        let kind = property
            .and_then(|it| it.get("type"))
            .and_then(Value::as_str);
        let value = match kind {
            Some("string") => Value::String(text.to_owned()),
            _ => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())),
        };
        inputs.insert(name.to_owned(), value);
    }
    Ok(())
}

/// Its manifest says what runs, where, and with what.
fn refuse_what_is_not_its_own(options: &RunOptions) -> Result<()> {
    let exec = &options.exec;
    let wrong = [
        ("--cwd", exec.cwd.is_some()),
        ("--input", !exec.input.is_empty()),
        ("--env", !exec.env.is_empty()),
        ("--stdin", exec.stdin),
        ("--mount", !exec.mount.is_empty()),
        ("--report", exec.report.is_some()),
        ("--live", options.simulation.live),
    ];
    match wrong.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((flag, _)) => Err(invalid(format!("a skill is not called with `{flag}`"))
            .hint("what it takes are its inputs: `NAME=VALUE`, or `--inputs JSON`")),
    }
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::InvalidArgument, Stage::Parse, message)
}
