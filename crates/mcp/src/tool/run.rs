//! Running code and commands.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::program::{Language, Program, Wishes, window};
use super::{Hint, Tool};
use crate::answer::Done;
use crate::api::Call;
use crate::exec::ExecAnswer;
use crate::follow;
use crate::task::Task;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunCode {
    /// What the code is written in.
    language: Language,
    /// The program itself. Its working directory is the project's; files it writes there stay.
    code: String,
    /// The workspace that it works on; the connection's own without it.
    project: Option<String>,
    /// What the program reads from its standard input.
    stdin: Option<String>,
    /// Environment variables.
    env: Option<BTreeMap<String, String>>,
    /// A directory of the project to start in.
    cwd: Option<String>,
    /// Ended after so long: `30s`, `5m`.
    timeout: Option<String>,
    /// The most memory: `512M`, `2G`.
    memory: Option<String>,
    /// Hosts that it must reach, as `pypi.org:443`. Policy decides.
    allow_net: Option<Vec<String>>,
    /// The name of a kept sandbox to run in, from `sandbox_create`.
    sandbox: Option<String>,
    /// A simulation whose changes are there for this run, as if they had been applied. What it writes
    /// is thrown away.
    over: Option<String>,
    /// Ask a person for what goes beyond policy, instead of being refused.
    ask: Option<bool>,
    /// Why it is needed, for the person who is asked.
    justification: Option<String>,
    /// Answer at once and let it go on; `exec_status` waits for it.
    background: Option<bool>,
    /// Bytes of output in the answer at most.
    max_output: Option<u32>,
}

impl Tool for RunCode {
    const NAME: &'static str = "run_code";
    const TITLE: &'static str = "Run code";
    const ABOUT: &'static str = "Runs Python, JavaScript or shell code in a sandbox of its own and \
        returns its exit code and output. The project's files are in the working directory \
        (/workspace/work); files written to /workspace/artifacts are returned as artifacts. There \
        is no network unless policy gives it. Use `run_command` for a program with arguments, and \
        `simulate` to see what code would do before it does it.";
    const HINT: Hint = Hint::Destroys;
    const OPEN: bool = true;
    type Output = ExecAnswer;

    async fn run(self, task: &Task) -> Done<ExecAnswer> {
        let wishes = Wishes {
            project: self.project,
            cwd: self.cwd,
            env: self.env,
            stdin: self.stdin,
            timeout: self.timeout,
            memory: self.memory,
            allow_net: self.allow_net,
            sandbox: self.sandbox,
            over: self.over,
            ask: self.ask,
            justification: self.justification,
        };
        let body = wishes.body(task, Program::Code(self.language, self.code));
        let submit = Call::post("/v1/execs").json(&body)?;
        let background = self.background.unwrap_or(false);
        follow::run(task, submit, window(self.max_output), background).await
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunCommand {
    /// The program and its arguments, each a word: `["pytest", "-q"]`. No shell reads it.
    command: Option<Vec<String>>,
    /// A bash script instead, for pipes and the like: `make 2>&1 | tail`.
    script: Option<String>,
    /// The workspace that it works on; the connection's own without it.
    project: Option<String>,
    /// What the program reads from its standard input.
    stdin: Option<String>,
    /// Environment variables.
    env: Option<BTreeMap<String, String>>,
    /// A directory of the project to start in.
    cwd: Option<String>,
    /// Ended after so long: `30s`, `5m`.
    timeout: Option<String>,
    /// The most memory: `512M`, `2G`.
    memory: Option<String>,
    /// Hosts that it must reach, as `pypi.org:443`. Policy decides.
    allow_net: Option<Vec<String>>,
    /// The name of a kept sandbox to run in, from `sandbox_create`.
    sandbox: Option<String>,
    /// A simulation whose changes are there for this run, as if they had been applied. What it writes
    /// is thrown away.
    over: Option<String>,
    /// Ask a person for what goes beyond policy, instead of being refused.
    ask: Option<bool>,
    /// Why it is needed, for the person who is asked.
    justification: Option<String>,
    /// Answer at once and let it go on; `exec_status` waits for it.
    background: Option<bool>,
    /// Bytes of output in the answer at most.
    max_output: Option<u32>,
}

impl Tool for RunCommand {
    const NAME: &'static str = "run_command";
    const TITLE: &'static str = "Run a command";
    const ABOUT: &'static str = "Runs a command (a list of words) or a bash script in a sandbox of \
        its own, in the project's directory, and returns its exit code and output. It sees the \
        project's files and the machine's programs, nothing else of the machine, and no network \
        unless policy gives it. Give `command` or `script`. Use `simulate` first for anything \
        whose consequences you are not sure of.";
    const HINT: Hint = Hint::Destroys;
    const OPEN: bool = true;
    type Output = ExecAnswer;

    async fn run(self, task: &Task) -> Done<ExecAnswer> {
        let program = Program::of(None, self.command, self.script)?;
        let wishes = Wishes {
            project: self.project,
            cwd: self.cwd,
            env: self.env,
            stdin: self.stdin,
            timeout: self.timeout,
            memory: self.memory,
            allow_net: self.allow_net,
            sandbox: self.sandbox,
            over: self.over,
            ask: self.ask,
            justification: self.justification,
        };
        let submit = Call::post("/v1/execs").json(&wishes.body(task, program))?;
        let background = self.background.unwrap_or(false);
        follow::run(task, submit, window(self.max_output), background).await
    }
}
