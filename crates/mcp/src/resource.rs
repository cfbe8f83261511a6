//! What can be read by its address: what execs printed and left behind, and the project's files.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use glovebox_model::{Code, Error, Stage};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::Value;

use crate::api::Call;
use crate::catalogue;
use crate::task::Task;
use crate::tool::skill::PREFIX;

const SCHEME: &str = "glovebox://";
const PART: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');
/// Of a resource that is sent whole; what is longer is read in parts by a tool.
const MOST: usize = 1 << 20;
/// The latest execs whose output is listed.
const EXECS: usize = 20;
const FILES: usize = 100;

pub(crate) fn output_uri(exec: &str, stream: &str) -> String {
    format!("{SCHEME}execs/{exec}/{stream}")
}

pub(crate) fn artifact_uri(exec: &str, path: &str) -> String {
    let path = utf8_percent_encode(path, PART);
    format!("{SCHEME}execs/{exec}/artifacts/{path}")
}

fn file_uri(project: &str, path: &str) -> String {
    let path = utf8_percent_encode(path, PART);
    format!("{SCHEME}files/{project}/{path}")
}

pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let template = |uri: &str, name: &str, about: &str| {
        ResourceTemplate::new(format!("{SCHEME}{uri}"), name).with_description(about)
    };
    vec![
        template("execs/{exec_id}/stdout", "stdout", "what an exec printed"),
        template(
            "execs/{exec_id}/stderr",
            "stderr",
            "what an exec complained about",
        ),
        template(
            "execs/{exec_id}/artifacts/{+path}",
            "artifact",
            "a file that an exec left in /workspace/artifacts",
        ),
        template("files/{project}/{+path}", "file", "a file of a project"),
        template(
            "skills/{id}/instructions",
            "instructions",
            "how a skill is meant to be used",
        ),
    ]
}

/// The latest of each kind, as far as the tools that would show them are there for the caller.
pub(crate) async fn list(task: &Task) -> Result<Vec<Resource>, Error> {
    let mut found = Vec::new();
    if catalogue::permit(task, "exec_output").await.is_ok() {
        outputs(task, &mut found).await?;
    }
    if catalogue::permit(task, "file_list").await.is_ok() {
        files(task, &mut found).await?;
    }
    Ok(found)
}

async fn outputs(task: &Task, found: &mut Vec<Resource>) -> Result<(), Error> {
    let call = Call::get("/v1/execs")
        .query("project_id", &task.project)
        .query("limit", EXECS);
    let page: Value = task.ask(call).await?;
    for exec in page["items"].as_array().into_iter().flatten() {
        let id = exec["exec_id"].as_str().unwrap_or_default();
        let command = exec["cmd"].as_str().unwrap_or("exec");
        for stream in ["stdout", "stderr"] {
            let size = exec[format!("{stream}_bytes")].as_u64().unwrap_or(0);
            if size > 0 {
                let resource = Resource::new(output_uri(id, stream), format!("{stream} of {id}"))
                    .with_description(format!("what `{command}` printed"))
                    .with_mime_type("text/plain")
                    .with_size(size);
                found.push(resource);
            }
        }
        for artifact in exec["artifacts"].as_array().into_iter().flatten() {
            if let Some(path) = artifact["path"].as_str() {
                let size = artifact["size"].as_u64().unwrap_or(0);
                found.push(Resource::new(artifact_uri(id, path), path).with_size(size));
            }
        }
    }
    Ok(())
}

async fn files(task: &Task, found: &mut Vec<Resource>) -> Result<(), Error> {
    let call = Call::get(&task.workspace(&None))
        .then("/files")
        .query("limit", FILES);
    match task.ask::<Value>(call).await {
        Ok(listing) => {
            for entry in listing["entries"].as_array().into_iter().flatten() {
                if entry["type"] == "file"
                    && let Some(path) = entry["path"].as_str()
                {
                    let size = entry["size"].as_u64().unwrap_or(0);
                    let uri = file_uri(&task.project, path);
                    found.push(Resource::new(uri, path).with_size(size));
                }
            }
        }
        // A project that nothing was ever written to.
        Err(error) if error.code == Code::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// What an address leads to.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    Output { exec: String, stream: String },
    Artifact { exec: String, path: String },
    File { project: String, path: String },
    Instructions { skill: String },
}

fn place(uri: &str) -> Option<Place> {
    let rest = uri.strip_prefix(SCHEME)?;
    let rest = percent_decode_str(rest).decode_utf8().ok()?;
    let (kind, rest) = rest.split_once('/')?;
    let (first, rest) = rest.split_once('/')?;
    if first.is_empty() || rest.is_empty() {
        return None;
    }
    let first = first.to_owned();
    match (kind, rest) {
        ("execs", "stdout" | "stderr") => Some(Place::Output {
            exec: first,
            stream: rest.to_owned(),
        }),
        ("execs", rest) => Some(Place::Artifact {
            exec: first,
            path: rest.strip_prefix("artifacts/")?.to_owned(),
        }),
        ("skills", "instructions") => Some(Place::Instructions { skill: first }),
        ("files", path) => Some(Place::File {
            project: first,
            path: path.to_owned(),
        }),
        _ => None,
    }
}

pub(crate) async fn read(task: &Task, uri: &str) -> Result<ReadResourceResult, Error> {
    let Some(place) = place(uri) else {
        let shown: String = uri.chars().take(200).collect();
        let message = format!("there is no resource `{shown}`");
        return Err(Error::new(Code::NotFound, Stage::Parse, message)
            .hint("`resources/templates/list` says what addresses look like"));
    };
    let tool = match &place {
        Place::Output { .. } | Place::Artifact { .. } => "exec_output".to_owned(),
        Place::File { .. } => "file_read".to_owned(),
        Place::Instructions { skill } => format!("{PREFIX}{skill}"),
    };
    catalogue::permit(task, &tool).await?;
    let call = match &place {
        Place::Output { exec, stream } => Call::get("/v1/execs").segment(exec).segment(stream),
        Place::Artifact { exec, path } => Call::get("/v1/execs")
            .segment(exec)
            .then("/artifacts")
            .path(path),
        Place::File { project, path } => Call::get("/v1/workspaces")
            .segment(project)
            .then("/files")
            .path(path),
        Place::Instructions { skill } => return instructions(task, skill, uri).await,
    };
    let is_output = matches!(place, Place::Output { .. });
    let call = match is_output {
        true => call.header(axum::http::header::ACCEPT, "text/plain"),
        false => call,
    };
    let reply = task.reply(call).await?;
    if reply.bytes.len() > MOST {
        let message = format!("it is larger than {} MiB", MOST >> 20);
        let tool = if is_output {
            "exec_output"
        } else {
            "file_read"
        };
        return Err(Error::new(Code::PayloadTooLarge, Stage::Collect, message)
            .hint(format!("`{tool}` reads it in parts")));
    }
    let contents = match std::str::from_utf8(&reply.bytes) {
        Ok(text) => ResourceContents::text(text, uri),
        Err(_) => ResourceContents::blob(STANDARD.encode(&reply.bytes), uri),
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

/// Of an imported skill; they are meant to be followed, and so not marked as data.
async fn instructions(task: &Task, skill: &str, uri: &str) -> Result<ReadResourceResult, Error> {
    let found: Value = task.ask(Call::get("/v1/skills").segment(skill)).await?;
    let Some(text) = found["instructions"].as_str() else {
        let message = format!("the skill `{skill}` has no instructions");
        return Err(Error::new(Code::NotFound, Stage::Collect, message)
            .hint("its description and its schemas say what it takes"));
    };
    let contents = ResourceContents::text(text, uri);
    Ok(ReadResourceResult::new(vec![contents]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_leads_back_to_what_it_was_made_from() {
        let made = artifact_uri("e_1", "out/a b?#%.txt");
        let (exec, path) = ("e_1".to_owned(), "out/a b?#%.txt".to_owned());
        assert_eq!(place(&made), Some(Place::Artifact { exec, path }));
        let made = file_uri("demo", "ä.txt");
        let (project, path) = ("demo".to_owned(), "ä.txt".to_owned());
        assert_eq!(place(&made), Some(Place::File { project, path }));
        assert!(matches!(
            place(&output_uri("e_1", "stderr")),
            Some(Place::Output { .. })
        ));
        for nothing in [
            "",
            "file:///etc/passwd",
            "glovebox://",
            "glovebox://execs/e_1",
            "glovebox://execs//stdout",
            "glovebox://execs/e_1/other",
            "glovebox://files/demo/",
            "glovebox://files/%ff/x",
        ] {
            assert_eq!(place(nothing), None, "{nothing}");
        }
    }
}
