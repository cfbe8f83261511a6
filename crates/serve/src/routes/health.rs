//! Whether the server is well.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use glovebox_engine::Submission;
use glovebox_model::{
    BackendName, ByteString, Call, Code, Evidence, Exec, Lifetime, OnExceed, PartialLimits,
    PartialProfile, Party, Permit, Placement, Program, Scope, Status, WorkspaceRef,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::wait::settle;
use crate::app::App;
use crate::auth::{Anybody, Caller};
use crate::body::Query;
use crate::failure::{Answer, Failure};
use crate::order::ids;
use glovebox_api::TaskRef;

const PROBE: Duration = Duration::from_secs(5);

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Alive {
    status: AliveStatus,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum AliveStatus {
    Ok,
}

/// Is it alive
#[utoipa::path(
    get, path = "/healthz", operation_id = "get_alive", tag = "server",
    responses((status = 200, description = "It answers.", body = Alive)),
)]
pub(super) async fn alive() -> Json<Alive> {
    Json(Alive {
        status: AliveStatus::Ok,
    })
}

/// Is it ready
///
/// Whether new work would be taken: the store can be written, and the server is not closing.
#[utoipa::path(
    get, path = "/readyz", operation_id = "get_ready", tag = "server",
    responses((status = 200, description = "It takes work.", body = Alive)),
)]
pub(super) async fn ready(State(app): State<App>) -> Answer<Json<Alive>> {
    let not_now = |code| Failure::new(code, "the server takes no work now").after(1);
    if app.dispatcher().is_closed() {
        return Err(not_now(Code::ShuttingDown));
    }
    if !app.dispatcher().can_start() {
        return Err(not_now(Code::BackendUnavailable));
    }
    match app.store_answers().await {
        true => Ok(Json(Alive {
            status: AliveStatus::Ok,
        })),
        false => Err(not_now(Code::StoreUnavailable)),
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Asked {
    /// Also run something trivial, in a container where the configuration speaks of them; needs
    /// `execs:write`.
    #[param(default = false)]
    probe: Option<bool>,
}

/// What system 0 told about itself, and what this host enforces.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SandboxHealth {
    status: SandboxStatus,
    /// The backend of a call that wishes for none: `native` or `docker`.
    runtime_mode: &'static str,
    /// A path of the host: for an admin alone.
    workspace_root_native: Option<String>,
    workspace_writable: bool,
    /// As `workspace_root_native`; these three only where the configuration speaks of containers.
    docker_cli_path: Option<String>,
    docker_version: Option<String>,
    docker_context: Option<String>,
    store: bool,
    /// Of all spaces: for an admin of the server alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    running: Option<u64>,
    /// As `running`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    queued: Option<u64>,
    max_concurrent_execs: u32,
    guarantees: Vec<Evidence>,
    probe_run: bool,
    probe_ok: Option<bool>,
    probe_error: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum SandboxStatus {
    Ok,
    Degraded,
}

/// Health in detail
#[utoipa::path(
    get, path = "/sandbox/health", operation_id = "sandbox_health", tag = "sandbox",
    params(Asked),
    responses((status = 200, description = "How it is.", body = SandboxHealth)),
)]
pub(super) async fn sandbox(
    State(app): State<App>,
    Anybody(caller): Anybody,
    Query(asked): Query<Asked>,
) -> Answer<Json<SandboxHealth>> {
    let wants_probe = asked.probe.unwrap_or(false);
    if wants_probe && !caller.token().may(Scope::ExecsWrite) {
        return Err(Failure::new(Code::Forbidden, "a probe needs `execs:write`"));
    }
    let health = app
        .ask("health", |dispatcher| Ok(dispatcher.health()))
        .await?;
    let engine = app
        .care("health", |dispatcher| Ok(dispatcher.container_engine()))
        .await?;
    let load = app.dispatcher().load();
    let probed = match wants_probe {
        true => {
            let backend = engine.as_ref().map(|_| BackendName::Docker);
            Some(probe(&app, &caller, backend).await)
        }
        false => None,
    };
    let probe_error = match &probed {
        Some(Err(failure)) => Some(failure.0.message.clone()),
        Some(Ok(Some(exec))) if exec.status != Status::Succeeded => Some(match &exec.error {
            Some(error) => error.message.clone(),
            None => format!("it ended as `{}`", exec.status),
        }),
        _ => None,
    };
    // Where people must agree first, nothing is tried and nothing is said.
    let was_probed = !matches!(probed, None | Some(Ok(None)));
    let contained = engine.as_ref().is_none_or(|it| it.error.is_none());
    let well = health.store.is_ok()
        && health.writable
        && health.startable
        && contained
        && probe_error.is_none();
    let operator = caller.operator().is_ok();
    let root = app.dispatcher().state().path().display().to_string();
    Ok(Json(SandboxHealth {
        status: if well {
            SandboxStatus::Ok
        } else {
            SandboxStatus::Degraded
        },
        runtime_mode: match &engine {
            Some(engine) if engine.is_usual => "docker",
            _ => "native",
        },
        workspace_root_native: operator.then_some(root),
        workspace_writable: health.writable,
        docker_cli_path: engine
            .as_ref()
            .filter(|_| operator)
            .map(|it| it.cli.clone()),
        docker_version: engine.as_ref().and_then(|it| it.version.clone()),
        docker_context: engine.as_ref().and_then(|it| it.context.clone()),
        store: health.store.is_ok(),
        running: operator.then_some(load.running),
        queued: operator.then_some(load.queued),
        max_concurrent_execs: load.limit,
        guarantees: nameless(health.guarantees, operator),
        probe_run: was_probed,
        probe_ok: was_probed.then_some(probe_error.is_none()),
        probe_error,
    }))
}

/// What was seen on the host may name its paths.
fn nameless(guarantees: Vec<Evidence>, operator: bool) -> Vec<Evidence> {
    if operator {
        return guarantees;
    }
    let hide = |evidence: Evidence| Evidence {
        evidence: String::new(),
        fix: None,
        ..evidence
    };
    guarantees.into_iter().map(hide).collect()
}

/// `None` where people would be asked first: nobody is bothered for a probe.
async fn probe(app: &App, caller: &Caller, backend: Option<BackendName>) -> Answer<Option<Exec>> {
    let word = |text: &str| ByteString::try_from(text).unwrap_or_default();
    let ids = ids(TaskRef::default(), caller)?;
    let eyes = caller.eyes();
    let call = Call {
        placement: Placement::Scope(Lifetime::Exec),
        on_exceed: OnExceed::Cap,
        overrides: PartialProfile {
            limits: PartialLimits {
                wall_ms: Some(glovebox_model::Millis(5000)),
                ..PartialLimits::default()
            },
            backend,
            ..PartialProfile::default()
        },
        ..Call::new(
            ids,
            glovebox_model::Vouched::People,
            WorkspaceRef::Scratch,
            Program::Argv {
                command: word("true"),
                args: Vec::new(),
            },
        )
    };
    let (asked, by) = (call.clone(), eyes.clone());
    let explained = app.ask("explain", move |dispatcher| {
        Ok(dispatcher.explain(&by, asked))
    });
    if explained.await?.permit == Some(Permit::Ask) {
        return Ok(None);
    }
    let submission = Submission {
        call,
        stdin: None,
        objection: None,
        key: None,
        by: Party {
            name: "glovebox".to_owned(),
            user_id: None,
        },
        eyes: eyes.clone(),
    };
    let submitted = app
        .submit(move |dispatcher| dispatcher.submit(submission))
        .await?;
    let settled = settle(app, &eyes, submitted.exec, PROBE).await?;
    Ok(Some(settled.into_inner()))
}
