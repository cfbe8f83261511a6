//! What a skill answered. It is data, whatever it says.

use glovebox_model::{Code, Error, Exec, Stage};
use serde_json::{Value, json};

use crate::json::parse;
use crate::skill::Skill;

/// Below the artifacts: what a program writes there is its answer.
pub const OUTPUT_FILE: &str = "output.json";

/// An answer that is larger stays an artifact.
pub const OUTPUT_BYTES_MAX: u64 = 1 << 20;

/// An answer, and whether it is what the manifest promises.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    pub value: Option<Value>,
    pub valid: bool,
    pub error: Option<Error>,
}

impl Skill {
    /// `written` is the artifact `output.json`, if there is one; it says nothing where the answer is
    /// what was printed and how it ended, which is not the program's to say. Of an exec that has not ended, or
    /// that never ran, there is no answer.
    pub fn output(&self, exec: &Exec, written: Option<&[u8]>) -> Option<Output> {
        if !exec.status.is_final() || exec.started_at.is_none() {
            return None;
        }
        let found = match written.filter(|_| !self.prints()) {
            Some(bytes) if bytes.len() as u64 > OUTPUT_BYTES_MAX => Err(format!(
                "`output.json` is larger than {OUTPUT_BYTES_MAX} bytes; it is among the artifacts"
            )),
            Some(bytes) => std::str::from_utf8(bytes)
                .map_err(|_| "`output.json` is not UTF-8".to_owned())
                .and_then(|text| {
                    parse(text).map_err(|(line, why)| {
                        format!("`output.json` is not JSON: {why} (line {line})")
                    })
                }),
            None if self.prints() => Ok(json!({
                "stdout": exec.stdout,
                "stderr": exec.stderr,
                "exit_code": exec.exit_code,
                "status": exec.status,
            })),
            None if exec.stdout_truncated => {
                Err("it printed more than is kept, and wrote no `output.json`".to_owned())
            }
            None => parse(&exec.stdout)
                .map_err(|_| "it wrote no `output.json` and printed no JSON".to_owned()),
        };
        Some(match found {
            Ok(value) => match self.mismatch(&value) {
                None => Output {
                    value: Some(value),
                    valid: true,
                    error: None,
                },
                Some(error) => Output {
                    value: Some(value),
                    valid: false,
                    error: Some(error.of_exec(exec.exec_id.clone())),
                },
            },
            Err(why) => Output {
                value: None,
                valid: false,
                error: Some(self.wrong(&why).of_exec(exec.exec_id.clone())),
            },
        })
    }

    /// Whether its answer is what it printed and how it ended.
    pub fn prints(&self) -> bool {
        let outputs = &self.manifest().interface.outputs;
        outputs.pointer("/properties/stdout").is_some()
    }

    fn mismatch(&self, value: &Value) -> Option<Error> {
        let errors = self.output_errors(value);
        if errors.is_empty() {
            return None;
        }
        let places: Vec<String> = errors
            .iter()
            .map(|(pointer, why)| match pointer.as_str() {
                "" => why.clone(),
                pointer => format!("`{pointer}`: {why}"),
            })
            .collect();
        Some(self.wrong(&places.join("; ")))
    }

    fn wrong(&self, why: &str) -> Error {
        let message = format!(
            "skill `{}` answered otherwise than it promises: {why}",
            self.id()
        );
        Error::new(Code::InvalidOutput, Stage::Collect, message)
            .hint("the exec's record has what it printed; the skill's author can mend it")
    }
}
