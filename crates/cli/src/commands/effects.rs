//! `glovebox effects`, `diff`, `apply` and `discard`.

use glovebox_model::{Deed, Effect, Exec, Result};

use super::execute::rerun;
use super::workspace::{decision, show_changes};
use crate::args::{ApplyArgs, ChangesArgs, DiscardArgs, EffectsArgs, Global};
use crate::context::Context;
use crate::exit::Exit;
use crate::human::count;
use crate::paint::Paint;
use crate::records::Records;
use crate::stdout::Reader;
use crate::{effect_line, render, stdout, workspaces};

pub(crate) fn show(global: &Global, args: &EffectsArgs) -> Result<Exit> {
    let records = Context::new(global).some_records()?;
    let exec = records.find(&args.exec)?;
    let wanted = |it: &Effect| {
        (args.kinds.is_empty() || args.kinds.contains(&it.kind()))
            && (!args.violations || !it.would_succeed)
    };
    let paint = Paint::on(&std::io::stdout());
    let mut told = false;
    let mut place = 0;
    loop {
        let (effects, next) = records.effects(&exec, place)?;
        for effect in effects.iter().filter(|it| wanted(it)) {
            told = true;
            let reader = match global.json {
                true => stdout::json(effect)?,
                false => {
                    let (tone, text) = effect_line::line(effect);
                    stdout::write(format!("{}\n", paint.apply(tone, &text)).as_bytes())?
                }
            };
            if reader == Reader::Gone {
                return Ok(Exit::SUCCESS);
            }
        }
        if next <= place {
            break;
        }
        place = next;
    }
    if !global.json && !global.quiet {
        if !told {
            render::note(
                "nothing to tell: effects are captured with `--simulate` and `--transactional`",
            );
        }
        gates(&exec);
    }
    Ok(Exit::SUCCESS)
}

/// What the gates said, for people.
pub(crate) fn gates(exec: &Exec) {
    for gate in exec.gates.iter().filter(|it| !it.passed()) {
        let failed = gate.validations.iter().filter(|it| !it.valid);
        let reasons: Vec<&str> = failed.filter_map(|it| it.reason.as_deref()).collect();
        let code = gate.failure_code.map_or("", |it| it.as_str());
        render::note(&render::printable(&format!(
            "gate `{}` {}: {code} {}",
            gate.gate,
            gate.status.as_str(),
            reasons.join("; ")
        )));
        if let Some(way) = &gate.remediation {
            render::note(&render::printable(&format!("  {way}")));
        }
    }
}

/// As a patch: what waits, or else what the effects say of text.
pub(crate) fn diff(global: &Global, args: &ChangesArgs) -> Result<Exit> {
    let records = Context::new(global).some_records()?;
    let exec = records.find(&args.exec)?;
    match exec.verdict {
        Some(glovebox_model::Verdict::Hold) => show_changes(global, args),
        _ => of_effects(global, &records, &exec),
    }
}

fn of_effects(global: &Global, records: &Records, exec: &Exec) -> Result<Exit> {
    let (mut place, mut text) = (0, String::new());
    loop {
        let (effects, next) = records.effects(exec, place)?;
        for effect in &effects {
            if let Deed::FilesystemWrite(it) = &effect.deed {
                let path = render::one_line(&it.path.display());
                text += &format!("{} {path}\n", it.operation.as_str());
                text += it.diff.as_deref().unwrap_or_default();
            }
        }
        if next <= place {
            break;
        }
        place = next;
    }
    stdout::text(&text)?;
    if text.is_empty() && !global.quiet {
        render::note("it changed nothing");
    }
    Ok(Exit::SUCCESS)
}

pub(crate) fn apply(global: &Global, args: &ApplyArgs) -> Result<Exit> {
    let exec = Context::new(global).some_records()?.find(&args.exec)?;
    if args.rerun {
        return rerun(global, &exec);
    }
    let decided = workspaces::of_exec(global, &exec)?.apply(&exec.exec_id)?;
    if !global.quiet && !global.json {
        let sent = requests(&exec);
        if sent > 0 {
            let sent = count(sent, "request was", "requests were");
            render::note(&format!("its files are kept; its {sent} never sent"));
        }
    }
    decision(global, &decided, "applied")
}

/// What would have left, as far as the record tells.
pub(crate) fn requests(exec: &Exec) -> u64 {
    let outward = |it: &&Effect| match &it.deed {
        Deed::NetworkRequest(request) => request.method.is_some(),
        Deed::ExternalApiCall(_) => true,
        _ => false,
    };
    exec.effects.iter().filter(outward).count() as u64
}

pub(crate) fn discard(global: &Global, args: &DiscardArgs) -> Result<Exit> {
    let exec = Context::new(global).some_records()?.find(&args.exec)?;
    let decided = workspaces::of_exec(global, &exec)?.discard(&exec.exec_id)?;
    decision(global, &decided, "discarded")
}
