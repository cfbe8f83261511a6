//! `meta.json`: how an exec was run. It is made from the record, which has the names of environment
//! variables and no field for their values, so nothing a program was given in secret has a way in.

use glovebox_model::{Access, Exec};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::layout::{WorkKind, artifacts_path, work_path};

/// The output lies beside the file, the artifacts are in the manifest, and the receipt is made
/// after the file.
const LEFT_OUT: [&str; 4] = ["stdout", "stderr", "artifacts", "receipt"];

#[derive(Serialize)]
struct Mount {
    guest: &'static str,
    /// Relative to the state directory, or what stands in for it.
    source: String,
    access: Access,
}

#[derive(Serialize)]
struct Meta {
    #[serde(flatten)]
    record: Map<String, Value>,
    mounts: Vec<Mount>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inputs<'a> {
    /// From here, relative to the state directory.
    Mounted(&'a str),
    Absent,
}

pub(super) fn render(
    exec: &Exec,
    work: WorkKind,
    inputs: Inputs<'_>,
) -> Result<Vec<u8>, serde_json::Error> {
    let mut record = match serde_json::to_value(exec)? {
        Value::Object(record) => record,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    };
    record.retain(|key, _| !LEFT_OUT.contains(&key.as_str()));
    let meta = Meta {
        record,
        mounts: mounts(exec, work, inputs),
    };
    serde_json::to_vec_pretty(&meta)
}

fn mounts(exec: &Exec, work: WorkKind, inputs: Inputs<'_>) -> Vec<Mount> {
    let id = &exec.project_id;
    let mut mounts = Vec::with_capacity(3);
    if let Inputs::Mounted(path) = inputs {
        mounts.push(Mount {
            guest: "/workspace/inputs",
            source: match work {
                WorkKind::Managed | WorkKind::Adopted => path.to_owned(),
                WorkKind::Scratch => format!("{path}/{}", exec.exec_id),
            },
            access: Access::Ro,
        });
    }
    mounts.push(Mount {
        guest: "/workspace/work",
        source: match work {
            WorkKind::Managed => work_path(id),
            // Where it is on the host is the caller's business, and not in a file that outlives it.
            WorkKind::Adopted => "adopted".to_owned(),
            WorkKind::Scratch => "memory".to_owned(),
        },
        access: exec
            .policy_snapshot
            .as_ref()
            .map_or(Access::None, |profile| profile.workspace),
    });
    mounts.push(Mount {
        guest: "/workspace/artifacts",
        source: artifacts_path(id, &exec.exec_id),
        access: Access::Rw,
    });
    mounts
}
