//! `glovebox skill info`.

use std::fmt::Write as _;

use glovebox_model::{Code, Error, Result, Stage};
use serde_json::Value;

use super::list::origin;
use crate::args::{Global, SkillInfoArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::key_values::KeyValues;
use crate::paint::Paint;
use crate::render::{one_line, printable};
use crate::stdout;

pub(super) fn run(global: &Global, args: &SkillInfoArgs) -> Result<Exit> {
    let skill = super::one(&Context::new(global), &args.id)?;
    if args.instructions {
        let Some(text) = &skill.instructions else {
            let message = format!("skill `{}` has no instructions", skill.id);
            return Err(Error::new(Code::NotFound, Stage::Parse, message)
                .hint("only skills with a `SKILL.md` have some"));
        };
        match global.json {
            true => stdout::json(text)?,
            false => stdout::text(&(printable(text) + "\n"))?,
        };
        return Ok(Exit::SUCCESS);
    }
    if global.json {
        stdout::json(&skill)?;
        return Ok(Exit::SUCCESS);
    }
    let mut sheet = KeyValues::new(Paint::on(&std::io::stdout()));
    sheet.line("skill", &skill.id);
    sheet.line("name", &skill.name);
    sheet.optional("version", skill.version.as_deref());
    sheet.line("digest", &skill.digest);
    sheet.line("from", origin(&skill));
    sheet.line(
        "callable",
        if skill.allowed {
            "yes"
        } else {
            "no, by the policy of tools"
        },
    );
    sheet.line("what", &skill.description);
    sheet.title("Inputs");
    properties(&mut sheet, &skill.inputs);
    sheet.title("Outputs");
    properties(&mut sheet, &skill.outputs);
    sheet.title("May do and use");
    let text = |pointer: &str, of: &Value| match of.pointer(pointer) {
        Some(Value::Array(list)) => list
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(", "),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => "-".to_owned(),
    };
    sheet.line("runs in", &text("/kind", &skill.runtime));
    sheet.line("command", &command(&skill.runtime));
    let files = skill.files.iter().flatten();
    let scripts: Vec<&str> = files.filter_map(|it| it.strip_prefix("scripts/")).collect();
    if !scripts.is_empty() {
        sheet.line("scripts", &scripts.join(", "));
    }
    sheet.line("reads", &text("/fs/read", &skill.permissions));
    sheet.line("writes", &text("/fs/write", &skill.permissions));
    sheet.line("network", &text("/net/mode", &skill.permissions));
    for (name, amount) in skill.limits.as_object().into_iter().flatten() {
        sheet.line(&name.replace('_', " "), &amount.to_string());
    }
    if let Some(example) = skill.examples.first().and_then(|it| it.get("inputs")) {
        let _ = writeln!(
            sheet.text,
            "\nexample: glovebox skill run {} --inputs '{}'",
            skill.id,
            one_line(&example.to_string()).replace('\'', "'\\''")
        );
    }
    if skill.instructions.is_some() {
        let _ = writeln!(
            sheet.text,
            "\nits instructions: glovebox skill info {} --instructions",
            skill.id
        );
    }
    stdout::text(&sheet.text)?;
    Ok(Exit::SUCCESS)
}

fn command(runtime: &Value) -> String {
    let words = runtime.pointer("/entrypoint").and_then(Value::as_array);
    let words = words.into_iter().flatten().filter_map(Value::as_str);
    words.collect::<Vec<_>>().join(" ")
}

fn properties(sheet: &mut KeyValues, schema: &Value) {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        sheet.line("", &schema.to_string());
        return;
    };
    for (name, property) in properties {
        let kind = match property.get("type") {
            Some(Value::String(kind)) => kind.clone(),
            Some(other) => other.to_string(),
            None => "any".to_owned(),
        };
        let mut told = kind;
        if required.contains(&name.as_str()) {
            told.push_str(", required");
        }
        if let Some(default) = property.get("default") {
            let _ = write!(told, ", else {default}");
        }
        if let Some(about) = property.get("description").and_then(Value::as_str) {
            let _ = write!(told, ": {about}");
        }
        sheet.line(name, &told);
    }
}
