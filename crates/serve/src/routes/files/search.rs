//! Finding files by what they hold, and by their names.

use axum::Json as Answered;
use axum::extract::State;
use glovebox_model::ByteString;
use glovebox_workspace::files::{self, Case, GlobOptions, GrepLimits, GrepOptions, Hidden, Needle};

use super::{start, told};
use crate::app::App;
use crate::auth::ReadsFiles;
use crate::body::Json;
use crate::failure::Answer;
use crate::routes::Path;
use crate::routes::errand::Errand;
use crate::wire::answer::{GlobAnswer, SearchAnswer};
use crate::wire::{GlobRequest, SearchRequest};

/// Of one answer, with those around each match.
const LINES: usize = 5000;
const LINE_BYTES: usize = 500;
const MATCHES: usize = 1000;
const PATHS: usize = 10_000;

const fn hidden(show: bool) -> Hidden {
    match show {
        true => Hidden::Show,
        false => Hidden::Skip,
    }
}

/// Search in files
///
/// Line by line. Links are not followed, files with a NUL byte are passed over, and every bound
/// that ends the search early is told.
#[utoipa::path(
    post, path = "/v1/workspaces/{project}/search", operation_id = "search_files", tag = "workspaces",
    params(("project" = String, Path, description = "The project's id.")),
    request_body = SearchRequest,
    responses((status = 200, description = "What was found.", body = SearchAnswer)),
)]
pub(in crate::routes) async fn search(
    State(app): State<App>,
    ReadsFiles(caller): ReadsFiles,
    Path(name): Path<String>,
    Json { value, .. }: Json<SearchRequest>,
) -> Answer<Answered<SearchAnswer>> {
    let errand = Errand::new(app, caller, &name)?;
    let under = start(value.path.as_ref().map(ByteString::as_bytes))?;
    let context = usize::try_from(value.context).unwrap_or(0);
    let wanted = value.limit.map_or(MATCHES, |limit| limit as usize);
    let options = GrepOptions {
        case: match value.ignore_case {
            true => Case::Ignore,
            false => Case::Exact,
        },
        context,
        include: value.include,
        exclude: value.exclude,
        hidden: hidden(value.hidden),
        limits: GrepLimits {
            matches: wanted.min(LINES / (1 + 2 * context)),
            line_bytes: LINE_BYTES,
            ..GrepLimits::default()
        },
    };
    let needle = match value.regex {
        true => Needle::Regex(value.pattern),
        false => Needle::Literal(value.pattern),
    };
    let searched = errand.look("search", move |workspace| {
        let (work, under) = (workspace.work()?, under.as_ref());
        let found = files::grep(work, under, &needle, &options).map_err(told)?;
        Ok(SearchAnswer::new(under, found))
    });
    searched.await.map(Answered)
}

/// Find files by name
#[utoipa::path(
    post, path = "/v1/workspaces/{project}/glob", operation_id = "glob_files", tag = "workspaces",
    params(("project" = String, Path, description = "The project's id.")),
    request_body = GlobRequest,
    responses((status = 200, description = "Each directory before what is in it.", body = GlobAnswer)),
)]
pub(in crate::routes) async fn glob(
    State(app): State<App>,
    ReadsFiles(caller): ReadsFiles,
    Path(name): Path<String>,
    Json { value, .. }: Json<GlobRequest>,
) -> Answer<Answered<GlobAnswer>> {
    let errand = Errand::new(app, caller, &name)?;
    let under = start(value.path.as_ref().map(ByteString::as_bytes))?;
    let options = GlobOptions {
        hidden: hidden(value.hidden),
        paths: value.limit.map_or(PATHS, |limit| limit as usize),
        ..GlobOptions::default()
    };
    let globbed = errand.look("glob", move |workspace| {
        let (work, under) = (workspace.work()?, under.as_ref());
        let found = files::glob(work, under, &value.pattern, &options).map_err(told)?;
        Ok(GlobAnswer::new(under, found))
    });
    globbed.await.map(Answered)
}
