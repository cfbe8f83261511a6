//! Skills: which there are, and calling one. A call goes the way of every exec.

use glovebox_api::{SkillAnswer, SkillCallRequest, SkillInfo, SkillList, TaskRef};
use std::io::Read;
use std::sync::Arc;

use axum::Json as Answered;
use axum::extract::State;
use axum::response::Response;
use glovebox_engine::{Dispatcher, Seen, Submission};
use glovebox_model::{Code, Correlation, Error, Exec, Result, SpaceId, Stage};
use glovebox_skill::{Catalogue, OUTPUT_BYTES_MAX, OUTPUT_FILE, Output, Skill};
use glovebox_workspace::RelPath;

use super::Path;
use super::submit::{self, Taken};
use super::wait::find;
use crate::app::App;
use crate::auth::{Caller, ReadsExecs, WritesExecs};
use crate::body::Json;
use crate::failure::{Answer, clash};
use crate::order::{Order, ids};

/// List skills
///
/// Those that can be called, and those that cannot with what is wrong with them. A change in the
/// operator's directory shows at once.
#[utoipa::path(
    get, path = "/v1/skills", operation_id = "list_skills", tag = "skills",
    responses((status = 200, description = "All of them.", body = SkillList)),
)]
pub(super) async fn list(
    State(app): State<App>,
    ReadsExecs(caller): ReadsExecs,
) -> Answer<Answered<SkillList>> {
    listing(&app, &caller).await.map(Answered)
}

/// List skills
///
/// As `GET /v1/skills`.
#[utoipa::path(
    get, path = "/skills", operation_id = "sandbox_list_skills", tag = "sandbox",
    responses((status = 200, description = "All of them.", body = SkillList)),
)]
pub(super) async fn legacy_list(
    State(app): State<App>,
    ReadsExecs(caller): ReadsExecs,
) -> Answer<Answered<SkillList>> {
    listing(&app, &caller).await.map(Answered)
}

async fn listing(app: &App, caller: &Caller) -> Answer<SkillList> {
    let (ids, skills) = (own_ids(caller)?, Arc::clone(app.skills()));
    let listed = app.ask("skills", move |dispatcher| {
        let listing = skills.list()?;
        Ok(listing.answer(|skill| allowed(dispatcher, &ids, skill)))
    });
    listed.await
}

/// Get a skill
#[utoipa::path(
    get, path = "/v1/skills/{id}", operation_id = "get_skill", tag = "skills",
    params(("id" = String, Path, description = "The skill's id.")),
    responses((status = 200, description = "The skill as it is now.", body = SkillInfo)),
)]
pub(super) async fn get(
    State(app): State<App>,
    ReadsExecs(caller): ReadsExecs,
    Path(id): Path<String>,
) -> Answer<Answered<SkillInfo>> {
    let (ids, skills) = (own_ids(&caller)?, Arc::clone(app.skills()));
    let found = app.ask("skills", move |dispatcher| {
        let skill = skills.find(&id)?;
        let allowed = allowed(dispatcher, &ids, &skill);
        Ok(skill.whole_info(allowed))
    });
    found.await.map(Answered)
}

/// Call a skill
///
/// An exec like any other: policy, approvals, limits and the ledger hold for it, with the manifest's
/// permissions and limits as one more layer that can only narrow. An input that does not fit is a
/// 409 and starts nothing. The answer has the exec's record and what the skill answered.
#[utoipa::path(
    post, path = "/v1/skills/{id}/invoke", operation_id = "invoke_skill", tag = "skills",
    params(("id" = String, Path, description = "The skill's id.")),
    request_body = SkillCallRequest,
    responses(
        (status = 200, description = "It has ended.", body = SkillAnswer),
        (status = 202, description = "It waits or runs.", body = SkillAnswer),
    ),
)]
pub(super) async fn invoke(
    State(app): State<App>,
    WritesExecs(caller): WritesExecs,
    Path(id): Path<String>,
    request: Json<SkillCallRequest>,
) -> Answer<Response> {
    call(&app, &caller, id, request).await
}

/// Call a skill
///
/// As `POST /v1/skills/{id}/invoke`.
#[utoipa::path(
    post, path = "/skills/{id}/invoke", operation_id = "sandbox_invoke_skill", tag = "sandbox",
    params(("id" = String, Path, description = "The skill's id.")),
    request_body = SkillCallRequest,
    responses(
        (status = 200, description = "It has ended.", body = SkillAnswer),
        (status = 202, description = "It waits or runs.", body = SkillAnswer),
    ),
)]
pub(super) async fn legacy_invoke(
    State(app): State<App>,
    WritesExecs(caller): WritesExecs,
    Path(id): Path<String>,
    request: Json<SkillCallRequest>,
) -> Answer<Response> {
    call(&app, &caller, id, request).await
}

/// What a skill answered
///
/// Of an exec that was not waited for, or that people had to agree to first. An exec that is of no
/// skill has none.
#[utoipa::path(
    get, path = "/v1/execs/{id}/output", operation_id = "get_exec_output", tag = "skills",
    params(("id" = String, Path, description = "The exec's id, or its client id.")),
    responses((status = 200, description = "The record, and the answer if there is one.", body = SkillAnswer)),
)]
pub(super) async fn output(
    State(app): State<App>,
    ReadsExecs(caller): ReadsExecs,
    Path(id): Path<String>,
) -> Answer<Answered<SkillAnswer>> {
    let exec = find(&app, &caller.eyes(), &id).await?;
    answered(&app, exec).await.map(Answered)
}

async fn call(
    app: &App,
    caller: &Caller,
    id: String,
    request: Json<SkillCallRequest>,
) -> Answer<Response> {
    let Json { value, mutation } = request;
    let wait = value.wait;
    let key = submit::key(caller, &mutation, value.request_id.clone());
    let (known, space) = (key.clone(), caller.space().clone());
    // Who asks again gets the first answer, whatever became of the skill.
    let replays = app.ask("skills", move |dispatcher| match known {
        Some(key) => Ok(dispatcher.store()?.replay(&space, &key)?.is_some()),
        None => Ok(false),
    });
    let called = match replays.await? {
        true => None,
        false => {
            let (skills, inputs) = (Arc::clone(app.skills()), value.inputs.clone());
            let called = app.ask("skills", move |_| skills.find(&id)?.call(&inputs));
            Some(called.await?)
        }
    };
    let order = Order::of_skill(value, called, caller)?;
    let project = order.project;
    let submission = Submission {
        call: order.call,
        stdin: None,
        objection: order.objection,
        key,
        by: caller.party(),
        eyes: caller.eyes(),
    };
    let taken: Taken = submit::send(app, caller, wait, move |dispatcher| {
        submit::may_enter(dispatcher, &submission, project.as_ref())?;
        // Its form was right: what is wrong with it is something else.
        dispatcher.submit(submission).map_err(clash)
    })
    .await?;
    let answer = answered(app, taken.exec().clone()).await?;
    Ok(taken.answer(|_| answer))
}

async fn answered(app: &App, exec: Seen<Exec>) -> Answer<SkillAnswer> {
    let skills = Arc::clone(app.skills());
    let made = app.ask("skills", move |dispatcher| {
        let output = output_of(dispatcher, &skills, &exec)?;
        Ok(glovebox_skill::answer(exec.into_inner(), output))
    });
    made.await
}

/// What is secret is taken out of it, as of everything that is shown.
fn output_of(
    dispatcher: &Dispatcher,
    skills: &Catalogue,
    exec: &Seen<Exec>,
) -> Result<Option<Output>> {
    if !exec.status.is_final() {
        return Ok(None);
    }
    let written = written(dispatcher, &exec.ids.space_id, exec)?;
    // One that is not what it was promised something else.
    let skill = exec.skill_id.as_deref().and_then(|id| skills.find(id).ok());
    let skill = skill.filter(|it| Some(it.digest()) == exec.skill_digest.as_deref());
    let Some(skill) = skill else {
        return Ok(None);
    };
    let Some(mut output) = skill.output(exec, written.as_deref()) else {
        return Ok(None);
    };
    if let Some(value) = &mut output.value {
        let masks = dispatcher.masks_of(exec)?;
        masks.redact_json(value);
    }
    Ok(Some(output))
}

fn written(dispatcher: &Dispatcher, space: &SpaceId, exec: &Exec) -> Result<Option<Vec<u8>>> {
    let is_there = |path: &[u8]| path == OUTPUT_FILE.as_bytes();
    if !exec.artifacts.iter().any(|it| is_there(it.path.as_bytes())) {
        return Ok(None);
    }
    let dir = match dispatcher
        .layout(space)?
        .artifacts(&exec.project_id, &exec.exec_id)
    {
        Err(error) if error.code == Code::NotFound => return Ok(None),
        dir => dir?,
    };
    let path = RelPath::new(OUTPUT_FILE)
        .map_err(|_| Error::new(Code::Internal, Stage::Collect, "no such path"))?;
    let Ok((file, _)) = dir.open_file(&path) else {
        return Ok(None);
    };
    let mut bytes = Vec::new();
    // One byte more says that it is too long.
    let read = file.take(OUTPUT_BYTES_MAX + 1).read_to_end(&mut bytes);
    Ok(read.is_ok().then_some(bytes))
}

fn own_ids(caller: &Caller) -> Answer<Correlation> {
    ids(TaskRef::default(), caller)
}

fn allowed(dispatcher: &Dispatcher, ids: &Correlation, skill: &Skill) -> bool {
    let stands_for = skill.stands_for().map(str::to_owned);
    let mut names = std::iter::once(skill.reference().tool()).chain(stands_for);
    names.all(|name| dispatcher.tool(ids, &name).allowed)
}
