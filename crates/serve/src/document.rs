//! The API's description: what the handlers say about themselves, and what holds for all of them.

use std::sync::LazyLock;

use glovebox_model::Scope;
use serde_json::{Map, Value, json};

use crate::routes;

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    let described = routes::all().into_openapi();
    complete(serde_json::to_value(described).unwrap_or_default())
});

/// The description as a value: requests are checked against it.
pub(crate) fn value() -> &'static Value {
    &DOCUMENT
}

/// The description as it is served and checked in.
pub(crate) fn openapi_json() -> String {
    let mut text = serde_json::to_string_pretty(&*DOCUMENT).unwrap_or_default();
    text.push('\n');
    text
}

const ABOUT: &str = "Runs code of agents in sandboxes, on one path that is recorded from request \
to receipt. Every request but those for health and for this description needs a token. Another \
space's things are answered like things that never were.\n\n\
**Idempotency.** Every POST, PUT, PATCH and DELETE takes `Idempotency-Key`: the same key with the \
same request is done once and answered the same for 24 hours; with another request it is a 409.\n\n\
**Limits.** Bodies: 1 MiB, 16 MiB for an exec, 64 MiB for a file. The head of a request: 16 KiB in \
64 lines, within 10 s. A body: within 60 s, with no pause over 10 s. A connection may be idle for \
60 s. `wait` lasts at most 10 minutes, then the answer is 202. Events can be read until 24 hours \
after the end.\n\n\
**Roles.** `x-scope` is what a token needs for an operation, `any` stands for any valid token; \
`x-operator` marks those that are for an admin of the space `local` alone; its auditor may read \
`/v1/pool` and `/v1/backends` too.\n\n\
**Sandboxes.** An exec has a fresh sandbox unless it asks for a kept one, by `sandbox` in its \
request. A token that is bound to an agent has that agent's and those that all share.\n\n\
**Approvals.** An exec that people must agree to waits as `awaiting_approval` and goes on by itself \
once they have; who asked cannot answer, and an agent never does. `GET /v1/approvals/ws` is a \
WebSocket: the token in `Authorization`, or as the protocol `bearer.TOKEN` beside `glovebox.v1`. It \
says `Confirmation` and takes `ConfirmationAnswer`, of at most 1 MiB.";

fn complete(mut document: Value) -> Value {
    document["openapi"] = json!("3.1.0");
    document["info"] = json!({
        "title": "Glovebox",
        "version": env!("CARGO_PKG_VERSION"),
        "description": ABOUT,
        "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
    });
    document["servers"] = json!([{"url": "/"}]);
    document["components"]["securitySchemes"] = json!({"bearer": {
        "type": "http", "scheme": "bearer",
        "description": "A token: `glovebox token create`, or the file `token` of the state directory.",
    }});
    document["components"]["responses"] = responses();
    let paths = document["paths"].take();
    document["paths"] = json!({});
    for (path, mut methods) in paths.as_object().cloned().into_iter().flatten() {
        for (method, operation) in methods.as_object_mut().into_iter().flatten() {
            complete_operation(&path, method, operation);
        }
        // The router's way to say that a parameter may hold slashes.
        document["paths"][path.replace("{*", "{")] = methods;
    }
    widen(&mut document);
    describe_bytes(&mut document["paths"]);
    document
}

/// Bytes are bytes, not lists of numbers; and none at all are an empty file.
fn describe_bytes(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(raw) = fields.get_mut("application/octet-stream") {
                raw["schema"] = json!({"type": "string", "format": "binary"});
            }
            if let Some(body) = fields.get_mut("requestBody")
                && body["content"].get("application/octet-stream").is_some()
            {
                body["required"] = json!(false);
            }
            fields.values_mut().for_each(describe_bytes);
        }
        Value::Array(items) => items.iter_mut().for_each(describe_bytes),
        _ => {}
    }
}

/// Numbers that cannot be negative go beyond what `int32` holds.
fn widen(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.get("format") == Some(&json!("int32")) && fields.contains_key("minimum") {
                fields.insert("format".to_owned(), json!("int64"));
            }
            fields.values_mut().for_each(widen);
        }
        Value::Array(items) => items.iter_mut().for_each(widen),
        _ => {}
    }
}

fn complete_operation(path: &str, method: &str, operation: &mut Value) {
    let mutating = matches!(method, "post" | "put" | "patch" | "delete");
    let secured = !routes::is_open(path);
    if secured {
        operation["security"] = json!([{"bearer": []}]);
        operation["x-scope"] = json!(scope(path, mutating));
        operation["x-operator"] = json!(is_operators(path));
    }
    if mutating {
        let key = json!({
            "name": "Idempotency-Key", "in": "header", "required": false,
            "description": "Makes the request one that is done once.",
            "schema": {"type": "string", "pattern": "^[!-~]+$", "minLength": 1, "maxLength": 255},
        });
        match operation
            .get_mut("parameters")
            .and_then(Value::as_array_mut)
        {
            Some(parameters) => parameters.push(key),
            None => operation["parameters"] = json!([key]),
        }
    }
    let parameters = operation
        .get_mut("parameters")
        .and_then(Value::as_array_mut);
    for parameter in parameters.into_iter().flatten() {
        let schema = parameter["schema"].take();
        parameter["schema"] = without_null(schema);
    }
    for (_, response) in operation["responses"].as_object_mut().into_iter().flatten() {
        response["headers"]["X-Request-Id"] = json!({
            "description": "The request's id in the server's log.",
            "schema": {"type": "string", "pattern": "^r_[0-9a-f]{32}$"},
        });
        if mutating {
            response["headers"]["Idempotency-Replayed"] = json!({
                "description": "`true` when this is the answer to an earlier request.",
                "schema": {"type": "string", "enum": ["true"]},
            });
        }
    }
    let has_body = operation.get("requestBody").is_some();
    let mut add = |status: u16, applies: bool| {
        let responses = &mut operation["responses"];
        if applies && responses.get(status.to_string()).is_none() {
            let reference = format!("#/components/responses/{}", name(status));
            responses[status.to_string()] = json!({"$ref": reference});
        }
    };
    for status in [400, 403, 500, 503] {
        add(status, true);
    }
    add(401, secured);
    add(429, secured);
    // An exec may name a sandbox, a grant names a secret.
    let names = path.ends_with("/execs") || matches!(path, "/v1/secret-grants" | "/v1/sessions");
    add(404, path.contains('{') || (has_body && names));
    add(408, mutating);
    add(
        409,
        mutating
            || path.starts_with("/v1/workspaces/{project}/")
            || matches!(path, "/v1/skills/{id}" | "/v1/sessions/{id}/screen"),
    );
    add(
        413,
        mutating || path.starts_with("/v1/workspaces/{project}/"),
    );
    add(415, has_body);
    add(507, mutating);
    let conditional = path.ends_with("/files/{*path}");
    add(412, conditional && method == "put");
    add(416, conditional && method == "get");
    // Events and approvals have their time, and an exec that waits for one ends with it.
    add(
        410,
        path.ends_with("/events")
            || path.ends_with("/reply")
            || (has_body && (path.ends_with("/execs") || path.ends_with("/invoke"))),
    );
}

/// What is of the whole server, and not of one space.
fn is_operators(path: &str) -> bool {
    matches!(
        path,
        "/metrics"
            | "/v1/settings"
            | "/v1/policy/replay"
            | "/v1/pool"
            | "/v1/backends"
            | "/v1/sandboxes/prune"
            | "/v1/snapshots/collect"
            | "/v1/snapshots/verify"
            | "/v1/webhooks"
            | "/v1/webhooks/deliveries"
            | "/v1/webhooks/{name}/test"
    )
}

/// What a token needs for this route. One that is not known here is described by null, which no
/// client and no test takes for an answer.
fn scope(path: &str, mutating: bool) -> Option<&'static str> {
    use Scope::{
        ApprovalsRead, ApprovalsWrite, AuditRead, ExecsRead, ExecsWrite, FilesRead, FilesWrite,
        MetricsRead, PolicyRead, Retrieve, SecretsRead, SecretsWrite, SettingsRead, SettingsWrite,
        TokensRead, TokensWrite,
    };
    let resource = path.trim_start_matches("/v1/").trim_start_matches('/');
    let ends = |with: &[&str]| with.iter().any(|end| path.ends_with(end));
    let (reading, writing) = match resource.split('/').next().unwrap_or_default() {
        "whoami" => return Some("any"),
        "sandbox" if path == "/sandbox/health" => return Some("any"),
        "sandboxes" if path == "/v1/sandboxes/explain" => (PolicyRead, PolicyRead),
        // What an exec wrote are files, and so is what becomes of them.
        "execs" if ends(&["/changes", "/effects", "/keep", "/apply", "/discard"]) => {
            (FilesRead, FilesWrite)
        }
        "sandbox" | "sandboxes" | "execs" | "sessions" | "skills" => (ExecsRead, ExecsWrite),
        "pool" | "backends" => (AuditRead, AuditRead),
        // What is looked for is in the body, and nothing is changed.
        "workspaces" if ends(&["/search", "/glob"]) => (FilesRead, FilesRead),
        "workspaces" | "snapshots" => (FilesRead, FilesWrite),
        "policy" | "tools" => (PolicyRead, PolicyRead),
        "approvals" | "grants" => (ApprovalsRead, ApprovalsWrite),
        "secrets" => (SecretsRead, SecretsWrite),
        // Granting one is an answer to whoever would ask.
        "secret-grants" => (SecretsRead, ApprovalsWrite),
        "audit" => (AuditRead, AuditRead),
        "metrics" => (MetricsRead, MetricsRead),
        "retrieve" => (Retrieve, Retrieve),
        "settings" | "webhooks" => (SettingsRead, SettingsWrite),
        "tokens" => (TokensRead, TokensWrite),
        _ => return None,
    };
    Some(if mutating { writing } else { reading }.as_str())
}

/// In a query or a header nothing can be null; what is optional is left out.
pub(crate) fn without_null(mut schema: Value) -> Value {
    if let Some(types) = schema.get("type").and_then(Value::as_array) {
        let left: Vec<Value> = types
            .iter()
            .filter(|it| **it != json!("null"))
            .cloned()
            .collect();
        if let [only] = left.as_slice() {
            schema["type"] = only.clone();
        }
    }
    let choices = schema.get("oneOf").and_then(Value::as_array).cloned();
    if let Some(choices) = choices {
        let left: Vec<&Value> = choices
            .iter()
            .filter(|it| it["type"] != json!("null"))
            .collect();
        if let [only] = left.as_slice() {
            return (*only).clone();
        }
    }
    schema
}

fn name(status: u16) -> &'static str {
    match status {
        400 => "Invalid",
        401 => "Unauthenticated",
        403 => "Forbidden",
        404 => "NotFound",
        408 => "TooSlow",
        409 => "Conflict",
        410 => "Expired",
        412 => "NotAsExpected",
        413 => "TooLarge",
        415 => "UnsupportedMediaType",
        416 => "OutOfRange",
        429 => "TooMany",
        503 => "Unavailable",
        507 => "DiskFull",
        _ => "Internal",
    }
}

fn responses() -> Value {
    let all = [
        (400, "The request is not one that is described here."),
        (401, "A valid token is needed."),
        (
            403,
            "Policy, or the token's role, does not allow it; also a foreign `Host` or `Origin`.",
        ),
        (404, "There is no such thing in the token's space."),
        (408, "The body came too slowly."),
        (
            409,
            "It clashes with what is there, or with an earlier request of the same key; or it \
             asks for what this server's host does not have.",
        ),
        (410, "It was kept for its time and is gone."),
        (412, "It is not what the request expects to be there."),
        (
            413,
            "The body is too large, or what is asked for is more than one answer may hold.",
        ),
        (415, "The body is of another kind."),
        (416, "The range begins behind the end."),
        (429, "Too many at once, or a budget is used up."),
        (500, "The server failed; its log has the request's id."),
        (
            503,
            "Not now: busy, starting, stopping, or without its store.",
        ),
        (507, "The disk, or the workspace's quota, is full."),
    ];
    let mut responses = Map::new();
    for (status, description) in all {
        let mut headers = json!({"X-Request-Id": {
            "description": "The request's id in the server's log.",
            "schema": {"type": "string", "pattern": "^r_[0-9a-f]{32}$"},
        }});
        if matches!(status, 429 | 503) {
            headers["Retry-After"] = json!({
                "description": "Seconds.", "schema": {"type": "integer", "minimum": 1},
            });
        }
        if status == 416 {
            headers["Content-Range"] = json!({"schema": {"type": "string"}});
        }
        if status == 401 {
            headers["WWW-Authenticate"] = json!({"schema": {"type": "string"}});
        }
        let body = json!({
            "description": description,
            "headers": headers,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}},
        });
        responses.insert(name(status).to_owned(), body);
    }
    Value::Object(responses)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn the_checked_in_description_is_up_to_date() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../openapi.json");
        let made = super::openapi_json();
        if std::env::var_os("GLOVEBOX_UPDATE_OPENAPI").is_some() {
            std::fs::write(&path, &made).unwrap();
            return;
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        let first = made
            .lines()
            .zip(kept.lines())
            .position(|(made, kept)| made != kept);
        assert!(
            made == kept,
            "openapi.json differs from what the handlers say, first in line {:?}; \
             run the tests with GLOVEBOX_UPDATE_OPENAPI=1 to write it",
            first.map(|line| line + 1)
        );
    }
}
