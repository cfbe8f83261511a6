//! What ties a simulation to what is done after it: a digest of what it showed, and its call, which
//! is kept sealed so that exactly it can be done for real.

use std::sync::Arc;

use glovebox_model::{
    Call, Code, Deed, Effect, Error, Exec, ExecId, GateResult, Mode, Permit, Preview, ProjectId,
    Result, ScriptRef, SpaceId, Stage, Writes,
};
use glovebox_workspace::Project;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::approvals::{refused, scripts_now};
use crate::dispatch::{Seal, SealedCall};
use crate::instance::Instance;
use crate::path::Draft;

const AGAIN: &str = "simulate it again: `glovebox run --simulate`";
/// Of SHA-256; what has no digest has another text there.
const DIGEST_DIGITS: usize = 64;
/// All that one exec can have.
const ALL: usize = 1_000_000;

/// A simulation that can be done for real, with what it was given to read.
#[derive(Debug)]
pub struct Rehearsed {
    pub call: Call,
    pub stdin: Option<Vec<u8>>,
}

/// Of the program and all that it did, without what differs from run to run: times and process ids.
pub(super) fn digest(record: &Exec, effects: &[Effect]) -> String {
    let told: Vec<Value> = effects.iter().map(lasting).collect();
    let whole = json!({
        "project": record.project_id,
        "cmd": record.cmd,
        "args": record.args,
        "cwd": record.cwd,
        "effects": told,
    });
    let digest = Sha256::digest(whole.to_string());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn lasting(effect: &Effect) -> Value {
    let what = match &effect.deed {
        Deed::FilesystemWrite(it) => json!([it.operation, it.path, it.from, it.after]),
        Deed::FilesystemRead(it) => json!([it.path]),
        Deed::NetworkRequest(it) => {
            json!([
                it.host,
                it.port,
                it.spoken,
                it.method,
                it.path,
                it.query_digest,
                it.headers_digest,
                it.body_digest
            ])
        }
        Deed::StateMutation(it) | Deed::ExternalApiCall(it) => json!(it),
        Deed::ProcessSpawn(it) => json!([it.program, it.argv]),
    };
    json!([effect.kind(), what, effect.would_succeed])
}

/// Simulations, and what is later done of them for real.
#[derive(Debug)]
pub struct Simulations {
    instance: Arc<Instance>,
}

impl Simulations {
    pub(crate) fn new(instance: &Arc<Instance>) -> Self {
        Self {
            instance: Arc::clone(instance),
        }
    }

    fn rehearsal_seal(&self) -> Result<Seal> {
        Seal::load_or_create(&self.instance.state().keys().join("queue.key"))
    }

    /// Keeps the call of a simulation for the day when it is done for real.
    pub(crate) fn rehearse(
        &self,
        project: &Project,
        exec: &ExecId,
        call: &Call,
        stdin: Option<&[u8]>,
    ) -> Result<()> {
        let kept = SealedCall {
            call: call.clone(),
            stdin: stdin.map(<[u8]>::to_vec),
            narrowed: None,
            consent: None,
            scripts: project.work().map(|work| scripts_now(call, work)),
            policy: None,
        };
        let sealed = self
            .rehearsal_seal()?
            .close(&call.ids.space_id, exec, &kept)?;
        project.keep_sealed(exec, &sealed)
    }

    fn rehearsal(&self, space: &SpaceId, project: &ProjectId, exec: &ExecId) -> Result<SealedCall> {
        let Some(sealed) = self.instance.layout(space)?.sealed(project, exec)? else {
            let message = format!("the call of `{exec}` is not kept any more");
            return Err(Error::new(Code::NotFound, Stage::Resolve, message).hint(AGAIN));
        };
        self.rehearsal_seal()?.open(space, exec, &sealed)
    }

    /// That the scripts which a rerun would run are those that were simulated. What cannot be bound
    /// is not the same.
    pub(crate) fn check_rehearsed(&self, call: &Call, project: &Project) -> Result<()> {
        let (Some(preview), Some(work)) = (&call.preview, project.work()) else {
            return Ok(());
        };
        let exec = &preview.exec_id;
        let kept = self.rehearsal(&call.ids.space_id, project.id(), exec)?;
        let shown = kept.scripts.unwrap_or_default();
        let now = scripts_now(call, work);
        let is_same = |it: &&ScriptRef| it.digest.len() == DIGEST_DIGITS && shown.contains(it);
        let other = now.iter().find(|it| !is_same(it));
        let Some(script) = other.or_else(|| shown.iter().find(|it| !now.contains(it))) else {
            return Ok(());
        };
        let path = &script.path;
        let message = match script.digest.len() == DIGEST_DIGITS {
            true => format!("`{path}` has changed since `{exec}` was simulated; nothing was run"),
            false => format!("`{path}` cannot be compared with what `{exec}` ran; nothing was run"),
        };
        Err(Error::new(Code::Conflict, Stage::Resolve, message)
            .hint(AGAIN)
            .hint("keep its files as they are: `glovebox apply` without `--rerun`"))
    }

    /// The call that does a simulation for real: beside the workspace, and held to what it showed.
    pub fn rehearsed(&self, space: &SpaceId, exec: &ExecId) -> Result<Rehearsed> {
        let record = self.instance.store()?.get(space, exec)?;
        may_follow(&record)?;
        let Some(preview) = record.preview.clone() else {
            return Err(not_simulated(exec));
        };
        let kept = self.rehearsal(space, &record.project_id, exec)?;
        Ok(Rehearsed {
            call: Call {
                mode: Mode::Transactional,
                writes: Writes::IfOk,
                simulation: None,
                client_id: None,
                preview: Some(preview),
                ..kept.call
            },
            stdin: kept.stdin,
        })
    }

    /// A directory of the caller's own is where the caller stands: it must be the same.
    pub(crate) fn check_place(
        &self,
        space: &SpaceId,
        preview: &Preview,
        draft: &Draft,
    ) -> Result<()> {
        let shown = self.instance.store()?.get(space, &preview.exec_id)?;
        match shown.project_id == draft.project_id {
            true => Ok(()),
            false => {
                let message = format!("`{}` was simulated in another workspace", preview.exec_id);
                Err(Error::new(Code::Conflict, Stage::Resolve, message)
                    .hint("go to the directory where it was simulated"))
            }
        }
    }

    /// Whether an agent may carry over by itself what a simulation showed.
    pub(crate) fn may_apply_alone(&self, space: &SpaceId, exec: &ExecId) -> Result<()> {
        let call = Call {
            mode: Mode::Run,
            preview: None,
            ..self.rehearsed(space, exec)?.call
        };
        let (assessed, _) = self.instance.policy.assess_call(call, None, None)?;
        let ruling = self.instance.policy.say(&assessed);
        match ruling.permit {
            Permit::Allow => Ok(()),
            Permit::Deny => Err(refused(&ruling)),
            Permit::Ask => {
                let message = format!("a person has to agree before `{exec}` is applied");
                Err(Error::new(Code::Forbidden, Stage::Obtain, message)
                    .hint("an admin looks at its effects and applies it")
                    .hint(
                        "or have it run for real (`rerun`): approvers are asked then, and see them",
                    ))
            }
        }
    }

    /// That a call may still follow the simulation that it names, and what that showed.
    pub(crate) fn previewed(&self, call: &Call) -> Result<Option<Vec<Effect>>> {
        let Some(preview) = &call.preview else {
            return Ok(None);
        };
        let space = &call.ids.space_id;
        let record = self.instance.store()?.get(space, &preview.exec_id)?;
        may_follow(&record)?;
        if record.preview.as_ref() != Some(preview) {
            let message = format!("`{}` is not what it was", preview.exec_id);
            return Err(Error::new(Code::Conflict, Stage::Resolve, message).hint(AGAIN));
        }
        let layout = self.instance.layout(space)?;
        let log = layout.effect_log(&record.project_id, &record.exec_id, 0, ALL)?;
        let (effects, _) = log.ok_or_else(|| not_simulated(&preview.exec_id))?;
        let lasting = effects.into_iter().filter(|it| !it.provisional).collect();
        if record.effect_count.is_some_and(|count| count.dropped > 0) {
            let message = format!(
                "`{}` did more than could be kept, so nothing can be held to it",
                preview.exec_id
            );
            return Err(Error::new(Code::Conflict, Stage::Resolve, message)
                .hint("keep its files as they are: `glovebox apply` without `--rerun`"));
        }
        Ok(Some(lasting))
    }
}

/// Whether anything may be done that this simulation showed.
pub(crate) fn may_follow(record: &Exec) -> Result<()> {
    let id = &record.exec_id;
    if record.mode != Mode::Simulate {
        return Err(not_simulated(id));
    }
    if !record.status.is_final() {
        let message = format!("`{id}` still runs");
        return Err(
            Error::new(Code::Conflict, Stage::Resolve, message).hint(format!(
                "wait for its end, or cancel it: `glovebox cancel {id}`"
            )),
        );
    }
    not_blocked(record)
}

/// What a gate holds back nobody carries over.
pub(crate) fn not_blocked(record: &Exec) -> Result<()> {
    let Some(gate) = record.gates.iter().find(|it| it.blocked) else {
        return Ok(());
    };
    Err(blocked(&record.exec_id, gate))
}

fn blocked(exec: &ExecId, gate: &GateResult) -> Error {
    let reasons = gate.validations.iter().filter(|it| !it.valid);
    let reasons: Vec<&str> = reasons.filter_map(|it| it.reason.as_deref()).collect();
    let message = match reasons.as_slice() {
        [] => format!("gate `{}` holds `{exec}` back", gate.gate),
        reasons => format!(
            "gate `{}` holds `{exec}` back: {}",
            gate.gate,
            reasons.join("; ")
        ),
    };
    let error = Error::new(Code::Held, Stage::Judge, message);
    let error = match &gate.remediation {
        Some(way) => error.hint(way.clone()),
        None => error,
    };
    error
        .hint(format!("see what it did: `glovebox effects {exec}`"))
        .hint(format!("drop it: `glovebox discard {exec}`"))
}

fn not_simulated(exec: &ExecId) -> Error {
    let message = format!("`{exec}` is no simulation");
    Error::new(Code::Conflict, Stage::Resolve, message)
        .hint("simulate first: `glovebox run --simulate -- COMMAND`")
}
