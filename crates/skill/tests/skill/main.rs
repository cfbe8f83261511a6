//! Skills from the outside: directories that nobody vouches for, and calls with anything in them.

#![recursion_limit = "256"]
#![expect(clippy::unwrap_used, reason = "a test stops where it fails")]

mod add;
mod calls;
mod catalogue;
mod hostile;
mod outputs;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

/// One that is right.
fn manifest(id: &str) -> Value {
    json!({
        "schema_version": "1.0",
        "id": id,
        "name": "A name",
        "version": "1.2.3",
        "description": "What it does.",
        "runtime": {"kind": "any", "entrypoint": ["echo", "{input.text}"]},
        "interface": {
            "inputs": {
                "type": "object",
                "required": ["text"],
                "additionalProperties": false,
                "properties": {
                    "text": {"type": "string", "maxLength": 200_000},
                    "other": {"type": "string"},
                    "count": {"type": "integer", "default": 3},
                    "words": {"type": "array", "items": {"type": "string"}},
                    "thing": {"type": "object"}
                }
            },
            "outputs": {"type": "object"}
        },
        "permissions": {
            "fs": {"read": ["inputs/**", "work/**"], "write": ["artifacts/**"]},
            "net": {"mode": "none"}
        },
        "limits": {
            "timeout_ms": 1000, "memory_mb": 64, "cpu_cores": 0.5, "pids": 8,
            "max_stdout_bytes": 1000, "max_stderr_bytes": 1000, "max_artifacts_bytes_total": 0
        }
    })
}

fn write(root: &Path, id: &str, manifest: &Value) {
    let dir = root.join(id);
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("manifest.json"), manifest.to_string()).unwrap();
}
