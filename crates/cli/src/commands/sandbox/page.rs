//! `glovebox sandbox info` and `glovebox sandbox explain`: one sandbox on a page.

use glovebox_engine::{Next, SandboxExplanation};
use glovebox_model::{Access, LimitField, LimitScope, Published, Result, Sandbox, SandboxConfig};
use jiff::Timestamp;

use super::list::{backend, tone};
use super::request;
use crate::args::{Global, SandboxExplainArgs, SandboxInfoArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::human::{age, time};
use crate::key_values::KeyValues;
use crate::paint::{Paint, Tone};
use crate::render::one_line;
use crate::sandboxes::{Sandboxes, as_asked};
use crate::stdout;

pub(crate) fn info(global: &Global, args: &SandboxInfoArgs) -> Result<Exit> {
    let row = Sandboxes::open(&Context::new(global))?.find(&args.sandbox)?;
    if global.json {
        stdout::json(&row)?;
    } else {
        let mut sheet = KeyValues::new(Paint::on(&std::io::stdout()));
        registered(&mut sheet, &row, Timestamp::now());
        made_with(&mut sheet, &row.config);
        stdout::text(&sheet.text)?;
    }
    Ok(Exit::SUCCESS)
}

pub(crate) fn explain(global: &Global, args: SandboxExplainArgs) -> Result<Exit> {
    let sandboxes = Sandboxes::open(&Context::new(global))?;
    let request = match args.sandbox {
        Some(name) => {
            let asked = as_asked(&sandboxes.find(&name)?);
            glovebox_engine::SandboxRequest {
                overrides: crate::commands::execute::standing_overrides(
                    &args.scope.limits,
                    &args.scope.backend,
                )?,
                on_exceed: args.scope.limits.on_exceed,
                ..asked
            }
        }
        None => request(args.scope)?,
    };
    let explanation = sandboxes.explain(request)?;
    if global.json {
        stdout::json(&explanation)?;
    } else {
        let paint = Paint::on(&std::io::stdout());
        stdout::text(&explained(&explanation, Timestamp::now(), paint))?;
    }
    Ok(Exit::SUCCESS)
}

fn registered(sheet: &mut KeyValues, row: &Sandbox, now: Timestamp) {
    let ago = |at: Timestamp| format!("{} ({} ago)", time(at), age(at, now));
    sheet.line("sandbox", &row.name);
    sheet.line("id", row.sandbox_id.as_str());
    sheet.toned("state", tone(row), row.state.as_str());
    sheet.optional("trouble", row.trouble.as_deref());
    sheet.optional("exec", row.exec_id.as_ref().map(|id| id.as_str()));
    sheet.line("lifetime", row.lifetime.as_str());
    sheet.optional("scope", row.scope.as_deref());
    sheet.line("project", row.project_id.as_str());
    sheet.line("backend", &backend(row));
    sheet.optional("container", row.container_id.as_deref());
    for Published { port, address } in &row.ports {
        sheet.line("port", &format!("{port} at {address}"));
    }
    sheet.line("created", &ago(row.created_at));
    sheet.line(
        "used",
        &format!("{}, {} in all", ago(row.last_used_at), times(row.uses)),
    );
    sheet.line("config hash", &row.config_hash);
}

fn times(uses: u64) -> String {
    crate::human::count(uses, "time", "times")
}

fn made_with(sheet: &mut KeyValues, config: &SandboxConfig) {
    sheet.title("made with");
    sheet.optional("image", config.image.as_deref());
    let access = match config.workspace {
        Access::None => "none",
        Access::Ro => "read-only",
        Access::Rw => "read and write",
    };
    sheet.line("workspace", access);
    sheet.line("network", config.network.as_str());
    let root = match config.keep_root {
        true => "what programs change outside the workspace is kept",
        false => "what programs change outside the workspace is not kept",
    };
    sheet.line("root", root);
    let built_in = |field: &LimitField| field.scope() == LimitScope::Sandbox;
    for field in LimitField::ALL.into_iter().filter(built_in) {
        sheet.line(field.key(), &field.show(field.get(&config.limits)));
    }
}

fn explained(explanation: &SandboxExplanation, now: Timestamp, paint: Paint) -> String {
    let mut sheet = KeyValues::new(paint);
    let (tone, next) = match explanation.next {
        Next::New => (Tone::Good, "none is there; the next exec makes one"),
        Next::Same => (Tone::Good, "the next exec runs in it"),
        Next::Kept => (
            Tone::Caution,
            "the next exec runs in it, though the configuration differs from the one it was created \
             with: it was used a moment ago",
        ),
        Next::Replaced => (Tone::Caution, "the next exec makes it anew"),
        Next::Refused => (Tone::Bad, "the next exec is refused"),
    };
    sheet.line("sandbox", &explanation.name);
    sheet.toned(
        "next",
        tone,
        &format!("{}: {next}", explanation.next.as_str()),
    );
    sheet.line("lifetime", explanation.lifetime.as_str());
    sheet.optional("scope", explanation.scope.as_deref());
    sheet.line("project", explanation.project_id.as_str());
    sheet.line("backend", explanation.config.backend.as_str());
    sheet.line("config hash", &explanation.config_hash);
    let demanded: Vec<&str> = explanation.demanded.iter().map(|it| it.as_str()).collect();
    sheet.line("demanded", &demanded.join(", "));
    made_with(&mut sheet, &explanation.config);
    if explanation.config.docker.is_some() && !explanation.sources.is_empty() {
        sheet.title("container settings");
        for decided in &explanation.sources {
            let by = match &decided.by.source {
                Some(rule) => format!("{}:{}", rule.file, rule.line),
                None => decided.by.layer.to_string(),
            };
            sheet.line(
                &one_line(&decided.field),
                &format!("{} ({by})", decided.value),
            );
        }
    }
    if let Some(row) = &explanation.sandbox {
        sheet.title("the one that is there");
        registered(&mut sheet, row, now);
    }
    for fix in &explanation.fix_it {
        let hint = paint.apply(Tone::Hint, "hint");
        sheet
            .text
            .push_str(&format!("\n{hint}: {}\n", one_line(fix)));
    }
    sheet.text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::sample;

    #[test]
    fn a_page_says_how_it_stands_and_what_it_was_made_with() {
        let row = sample::sandbox();
        let now = row.last_used_at + jiff::SignedDuration::from_secs(180);
        let mut sheet = KeyValues::new(Paint::Plain);
        registered(&mut sheet, &row, now);
        made_with(&mut sheet, &row.config);
        let expected = "\
sandbox     glovebox-ann-01234567
id          sb_07070707070747078707070707070707
state       down
lifetime    agent
scope       ann
project     demo
backend     native
created     2023-11-14T22:13:20Z (3m ago)
used        2023-11-14T22:13:20Z (3m ago), 2 times in all
config hash abab

made with
workspace   read and write
network     none
root        what programs change outside the workspace is not kept
cpu_time    1m
memory      512M
pids        64
cpus        1
disk        1G
files       1000
open_files  1024
gpus        0
tpus        0
";
        assert_eq!(sheet.text, expected);
    }

    #[test]
    fn an_explanation_ends_with_the_way_out() {
        let row = sample::sandbox();
        let explanation = SandboxExplanation {
            name: row.name.clone(),
            lifetime: row.lifetime,
            scope: row.scope.clone(),
            project_id: row.project_id.clone(),
            config: row.config.clone(),
            config_hash: "cdcd".to_owned(),
            next: Next::Kept,
            demanded: vec![glovebox_model::Guarantee::OwnPids],
            sources: Vec::new(),
            fix_it: vec!["make it anew".to_owned()],
            sandbox: Some(row),
        };
        let now = Timestamp::from_second(1_700_000_180).unwrap();
        let shown = explained(&explanation, now, Paint::Plain);
        assert!(
            shown.contains("next        kept: the next exec runs in it"),
            "{shown}"
        );
        assert!(
            shown.contains("\nthe one that is there\nsandbox     glovebox-ann"),
            "{shown}"
        );
        assert!(shown.ends_with("\nhint: make it anew\n"), "{shown}");
    }
}
