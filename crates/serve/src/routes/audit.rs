//! The ledger of the token's space; verified and exported for those who oversee the whole server, of
//! all spaces.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::StreamExt;
use glovebox_model::{ExecId, Mode, Page, ReceiptRef, SpaceId};
use glovebox_store::{
    Checkpoint, Entry, EntryFilter, Expectations, ExportFormat, Kind, Problem, RetentionTier,
    SpaceLedger,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::auth::{Caller, ReadsAudit};
use crate::body::Query;
use crate::failure::{Answer, Failure};
use crate::per_space_limit::Place;
use glovebox_api::{Id, Tags};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Filter {
    #[param(inline)]
    exec_id: Option<ExecId>,
    #[param(value_type = Option<String>, pattern = "^(?:planned|started|outcome|refused|recovered|administered)$")]
    kind: Option<Kind>,
    #[param(inline)]
    tag: Option<Id>,
    /// Further ones: an entry has all of them.
    #[param(inline)]
    tags: Option<Tags>,
    /// An entry has none of them.
    #[param(inline)]
    without: Option<Tags>,
    /// About execs of this mode.
    #[param(value_type = Option<String>, pattern = "^(?:run|simulate|transactional|mock)$")]
    mode: Option<Mode>,
    /// So old: of the last 24 hours, 7 days, 30 days, or older.
    #[param(value_type = Option<String>, pattern = "^(?:hot|warm|cold|archived)$")]
    tier: Option<RetentionTier>,
    /// From this time on.
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<Timestamp>,
    /// Before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    until: Option<Timestamp>,
    #[param(inline)]
    user_id: Option<Id>,
    #[param(inline)]
    conversation_id: Option<Id>,
    #[param(inline)]
    turn_id: Option<Id>,
    #[param(inline)]
    task_id: Option<Id>,
    #[param(inline)]
    workflow_id: Option<Id>,
    #[param(inline)]
    agent_id: Option<Id>,
    #[param(inline)]
    session_id: Option<Id>,
    /// At most so many.
    #[param(minimum = 1, maximum = 1000, default = 50)]
    limit: Option<usize>,
    /// `next` of the page before.
    #[param(pattern = r"^-?[0-9]{1,18}\.[0-9]{1,18}$")]
    cursor: Option<String>,
}

impl Filter {
    fn entries(self, now: Timestamp) -> EntryFilter {
        let text = |id: Option<Id>| id.map(|id| id.0);
        let tags = self.tag.map(|tag| tag.0).into_iter();
        let mut filter = EntryFilter {
            exec_id: self.exec_id,
            kind: self.kind,
            tags: tags.chain(each(self.tags)).collect(),
            without: each(self.without),
            since: self.since,
            until: self.until,
            user_id: text(self.user_id),
            conversation_id: text(self.conversation_id),
            turn_id: text(self.turn_id),
            task_id: text(self.task_id),
            workflow_id: text(self.workflow_id),
            agent_id: text(self.agent_id),
            session_id: text(self.session_id),
            limit: self.limit.unwrap_or(0),
            cursor: self.cursor,
        };
        if let Some(mode) = self.mode {
            filter = filter.of_mode(mode);
        }
        match self.tier {
            Some(tier) => filter.of_tier(tier, now),
            None => filter,
        }
    }
}

fn each(tags: Option<Tags>) -> Vec<String> {
    let tags = tags.map(|tags| tags.0).unwrap_or_default();
    let tags = tags.split(',').filter(|tag| !tag.is_empty());
    tags.map(str::to_owned).collect()
}

/// One entry. It never holds arguments, output or values of the environment.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LedgerEntry {
    space_id: SpaceId,
    seq: u64,
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    #[schema(value_type = String)]
    kind: Kind,
    exec_id: Option<ExecId>,
    ids: BTreeMap<String, String>,
    tags: Vec<String>,
    #[schema(value_type = Object)]
    body: Value,
    prev_hash: String,
    hash: String,
    /// How old it is now: `hot`, `warm`, `cold` or `archived`. Not a part of the entry.
    #[schema(value_type = String)]
    retention_tier: RetentionTier,
}

impl LedgerEntry {
    pub(super) fn new(entry: Entry, now: Timestamp) -> Self {
        Self {
            retention_tier: RetentionTier::at(entry.at, now),
            space_id: entry.space_id,
            seq: entry.seq,
            at: entry.at,
            kind: entry.kind,
            exec_id: entry.exec_id,
            ids: entry.ids,
            tags: entry.tags,
            body: entry.body,
            prev_hash: entry.prev_hash,
            hash: entry.hash,
        }
    }
}

/// Query the ledger
///
/// Entries that match everything that is given. A page looks at so many entries and no more, so one
/// with few items, or none, may have a `next`.
#[utoipa::path(
    get, path = "/v1/audit", operation_id = "query_audit", tag = "audit",
    params(Filter),
    responses((status = 200, description = "A page.", body = Page<LedgerEntry>)),
)]
pub(super) async fn query(
    State(app): State<App>,
    ReadsAudit(caller): ReadsAudit,
    Query(filter): Query<Filter>,
) -> Answer<Json<Page<LedgerEntry>>> {
    let space = caller.space().clone();
    let now = Timestamp::now();
    let filter = filter.entries(now);
    let page = app.ask("query", move |dispatcher| {
        dispatcher.store()?.query(&space, &filter)
    });
    let entry = |entry| LedgerEntry::new(entry, now);
    Ok(Json(page.await?.map(entry)))
}

/// Whether the ledger is as it was written.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Verification {
    sound: bool,
    /// Whether all spaces were looked at, and not one alone.
    all_spaces: bool,
    /// How many entries were seen, in all the spaces that were looked at.
    entries: u64,
    /// The last of them; where all spaces were looked at, of the space `local`.
    head: Option<ReceiptRef>,
    /// What was looked at.
    spaces: Vec<SpaceLedger>,
    problems: Vec<Problem>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Of {
    /// Only this one. Without it an admin or an auditor of the space `local` gets all spaces, and
    /// every other token its own.
    #[param(inline)]
    space_id: Option<SpaceId>,
}

/// The one space that is meant; `None`: all of them.
fn meant(caller: &Caller, space: Option<SpaceId>) -> Answer<Option<SpaceId>> {
    let own = caller.space();
    match space {
        None if caller.overseer().is_ok() => Ok(None),
        None => Ok(Some(own.clone())),
        Some(space) if space == *own => Ok(Some(space)),
        Some(space) => caller.overseer().map(|()| Some(space)),
    }
}

/// Verify the ledger
///
/// Looks at every entry, and at every row that the entries vouch for: of all spaces for an admin or
/// an auditor of the space `local`, of its own for every other token. A space reads its whole ledger
/// at most four times at once.
#[utoipa::path(
    get, path = "/v1/audit/verify", operation_id = "verify_audit", tag = "audit",
    params(Of),
    responses((status = 200, description = "What was found.", body = Verification)),
)]
pub(super) async fn verify(
    State(app): State<App>,
    ReadsAudit(caller): ReadsAudit,
    Query(of): Query<Of>,
) -> Answer<Json<Verification>> {
    let space = meant(&caller, of.space_id)?;
    let reader = app.readers().enter(caller.space())?;
    let nothing = Expectations::default();
    // It stops soon after the caller has gone, and its place is taken until then.
    let _waits = Waits(Arc::clone(&nothing.abandoned));
    let verified = app.ask("verify", move |dispatcher| {
        let _reader = reader;
        let store = dispatcher.store()?;
        match &space {
            Some(space) => store.verify(space, &nothing),
            None => store.verify_all(&nothing),
        }
    });
    Ok(Json(Verification::of(verified.await?)))
}

/// Says, when it goes, that nobody waits any more.
struct Waits(Arc<AtomicBool>);

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Verification {
    fn of(found: glovebox_store::Verification) -> Self {
        Self {
            sound: found.is_sound(),
            all_spaces: found.all_spaces,
            entries: found.entries,
            head: found.head,
            spaces: found.spaces,
            problems: found.problems,
        }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Export {
    /// `jsonl` can be verified without the server; `ocsf` is for other tools.
    #[param(inline)]
    format: Option<Format>,
    /// Only this one. Without it an admin or an auditor of the space `local` gets all spaces, and
    /// every other token its own.
    #[param(inline)]
    space_id: Option<SpaceId>,
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Format {
    Jsonl,
    Ocsf,
}

/// Export the ledger
///
/// It ends where the ledger ended when it was asked for; `jsonl` ends with a signed checkpoint of
/// that, and without one it was cut off. It has the digests of the rows that the entries vouch for. A space reads its whole ledger at most four times at once.
#[utoipa::path(
    get, path = "/v1/audit/export", operation_id = "export_audit", tag = "audit",
    params(Export),
    responses((status = 200, description = "One JSON object on each line.",
        content_type = "application/x-ndjson", body = String)),
)]
pub(super) async fn export(
    State(app): State<App>,
    ReadsAudit(caller): ReadsAudit,
    Query(asked): Query<Export>,
) -> Answer<Response> {
    let format = match asked.format {
        None | Some(Format::Jsonl) => ExportFormat::Jsonl,
        Some(Format::Ocsf) => ExportFormat::Ocsf,
    };
    let reader = app.readers().enter(caller.space())?;
    let space = meant(&caller, asked.space_id)?;
    let begun = app.ask("export", move |dispatcher| {
        let store = dispatcher.store()?;
        match &space {
            Some(space) => store.begin_export(space, format),
            None => store.begin_export_of_all(format),
        }
    });
    let exporting = Exporting {
        export: begun.await?,
        app,
        reader,
    };
    // The first piece before the answer begins: its failure can still be an answer.
    let (first, exporting) = exporting.next().await?;
    let rest = futures_util::stream::unfold(exporting, |exporting| async {
        // An error cuts the answer off, so that nobody takes it for the whole.
        match exporting?.next().await {
            Ok((piece, next)) => Some((Ok(piece?), next)),
            Err(failure) => Some((Err(io::Error::other(failure.0)), None)),
        }
    });
    let first = futures_util::stream::iter(first.map(Ok));
    let mut response = Response::new(Body::from_stream(first.chain(rest)));
    let lines = HeaderValue::from_static("application/x-ndjson");
    response.headers_mut().insert(header::CONTENT_TYPE, lines);
    Ok(response)
}

/// An export under way. While the client reads a piece, neither a thread nor the store is held.
struct Exporting {
    app: App,
    export: glovebox_store::Export,
    reader: Place,
}

impl Exporting {
    /// Nothing, and no more to come, after the last piece.
    async fn next(self) -> Answer<(Option<Bytes>, Option<Self>)> {
        let Self {
            app,
            mut export,
            reader,
        } = self;
        let asked = app.ask("export", move |dispatcher| {
            let piece = dispatcher.store()?.next_piece(&mut export)?;
            Ok((piece, export))
        });
        let (piece, export) = asked.await?;
        let next = piece.is_some().then_some(Self {
            app,
            export,
            reader,
        });
        Ok((piece.map(Bytes::from), next))
    }
}

/// Get a checkpoint
#[utoipa::path(
    get, path = "/v1/audit/checkpoint", operation_id = "get_audit_checkpoint", tag = "audit",
    responses(
        (status = 200, description = "Of the last entry.", body = Checkpoint),
        (status = 404, description = "Nothing is written yet.", body = crate::failure::ErrorBody),
    ),
)]
pub(super) async fn checkpoint(
    State(app): State<App>,
    ReadsAudit(caller): ReadsAudit,
) -> Answer<Json<Checkpoint>> {
    let space = caller.space().clone();
    let checkpoint = app.ask("checkpoint", move |dispatcher| {
        dispatcher.store()?.checkpoint(&space)
    });
    let found = checkpoint.await?.ok_or_else(|| {
        Failure::not_found("checkpoint").hint("nothing is written in the ledger of this space yet")
    })?;
    Ok(Json(found))
}
