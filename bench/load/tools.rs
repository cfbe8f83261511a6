//! What a tool costs: `/bin/true` as a call of the engine in this process, and the same as a call of
//! `run_command` at a `glovebox mcp` of our own, over its standard input and output. One after the
//! other in each round, so that whatever the machine does happens to both.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use glovebox_engine::{
    Dispatcher, KeySource, ServerConfig, ServerPurpose, Spawner, Submission, Viewer, host_facts,
};
use glovebox_model::{
    Call, Correlation, Mode, OnExceed, PartialProfile, Party, Placement, Program, SpaceId, Status,
    WorkspaceRef, Writes,
};
use glovebox_policy::Config;
use glovebox_store::StateDir;
use serde_json::{Value, json};

use crate::{Args, Fallible};

const PROJECT: &str = "bench";
const WARM_UP: usize = 10;

pub(crate) fn run(args: &Args, calls: usize) -> Fallible {
    let below = tempfile::tempdir_in(&args.below)?;
    let (direct, mcp) = (below.path().join("direct"), below.path().join("mcp"));
    // Before the first thread.
    let spawner = Spawner::fork()?;
    let engine = Engine::open(&direct, spawner)?;
    let mut tools = Tools::start(args, &mcp)?;
    let (mut engine_took, mut tool_took) = (Vec::new(), Vec::new());
    for round in 0..WARM_UP + calls {
        let one = engine.call()?;
        let two = tools.call(round)?;
        if round >= WARM_UP {
            engine_took.push(one);
            tool_took.push(two);
        }
    }
    tools.end()?;
    engine
        .dispatcher
        .drain(std::time::Duration::ZERO, &|| true)?;
    let (direct, tool) = (Quantiles::of(engine_took), Quantiles::of(tool_took));
    if args.json {
        let row = |it: &Quantiles| json!({"p50_ms": it.p50, "p99_ms": it.p99});
        let overhead = tool.p50 - direct.p50;
        println!(
            "{}",
            json!({"tools": {"engine": row(&direct), "stdio": row(&tool), "overhead_p50_ms": overhead}})
        );
        return Ok(());
    }
    println!("{:>12} {:>9} {:>9}", "", "p50 ms", "p99 ms");
    println!("{:>12} {:>9.2} {:>9.2}", "engine", direct.p50, direct.p99);
    println!("{:>12} {:>9.2} {:>9.2}", "tool, stdio", tool.p50, tool.p99);
    println!("{:>12} {:>9.2}", "overhead", tool.p50 - direct.p50);
    Ok(())
}

struct Quantiles {
    p50: f64,
    p99: f64,
}

impl Quantiles {
    fn of(mut took: Vec<f64>) -> Self {
        took.sort_by(f64::total_cmp);
        let at = |part: f64| took[((took.len() - 1) as f64 * part) as usize];
        Self {
            p50: at(0.5),
            p99: at(0.99),
        }
    }
}

struct Engine {
    dispatcher: Arc<Dispatcher>,
    runtime: tokio::runtime::Runtime,
}

impl Engine {
    fn open(state: &std::path::Path, spawner: Spawner) -> Fallible<Self> {
        let rules = ServerConfig {
            state: StateDir::open(state)?,
            database: None,
            config: Config::default(),
            shadow: None,
            host: host_facts(),
            concurrency_ceiling: 4,
            secrets_key: KeySource::Usual,
            shared: None,
            purpose: ServerPurpose::Callers,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        Ok(Self {
            dispatcher: Dispatcher::open(rules, spawner)?,
            runtime,
        })
    }

    /// In milliseconds.
    fn call(&self) -> Fallible<f64> {
        let since = Instant::now();
        let eyes = Viewer::of_space(SpaceId::local());
        let submitted = self.dispatcher.submit(Submission {
            call: call()?,
            stdin: None,
            objection: None,
            key: None,
            by: Party {
                name: "bench".to_owned(),
                user_id: None,
            },
            eyes: eyes.clone(),
        })?;
        let exec = submitted.exec;
        let status = match self.dispatcher.attend(&exec) {
            Some(mut live) => {
                self.runtime.block_on(live.end());
                live.record().map(|it| it.status)
            }
            None => None,
        };
        let status = match status {
            Some(status) => status,
            None => self.dispatcher.find(&eyes, exec.exec_id.as_str())?.status,
        };
        let took = since.elapsed().as_secs_f64() * 1000.0;
        match status {
            Status::Succeeded => Ok(took),
            other => Err(format!("it ended as `{other}`").into()),
        }
    }
}

fn call() -> Fallible<Call> {
    Ok(Call {
        ids: Correlation::of_space(SpaceId::local()),
        vouched: glovebox_model::Vouched::People,
        client_id: None,
        workspace: WorkspaceRef::Project(PROJECT.parse()?),
        placement: Placement::default(),
        program: Program::Argv {
            command: "/bin/true".try_into()?,
            args: Vec::new(),
        },
        cwd: None,
        env: Vec::new(),
        inputs: Vec::new(),
        mounts: Vec::new(),
        secrets: Vec::new(),
        mode: Mode::Run,
        on_exceed: OnExceed::Refuse,
        justification: None,
        overrides: PartialProfile::default(),
        writes: Writes::default(),
        simulation: None,
        over: None,
        preview: None,
        skill: None,
        session: None,
    })
}

struct Tools {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Tools {
    fn start(args: &Args, state: &std::path::Path) -> Fallible<Self> {
        let mut child = Command::new(&args.glovebox)
            .arg("--state-dir")
            .arg(state)
            .args(["mcp", "--project", PROJECT])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().ok_or("no input")?;
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut tools = Self {
            child,
            input,
            output,
        };
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "0"},
        });
        tools.ask("initialize", 0, hello)?;
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        writeln!(tools.input, "{ready}")?;
        Ok(tools)
    }

    fn ask(&mut self, method: &str, id: usize, params: Value) -> Fallible<Value> {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(self.input, "{message}")?;
        let mut line = String::new();
        loop {
            line.clear();
            if self.output.read_line(&mut line)? == 0 {
                return Err("the tools are gone".into());
            }
            let answer: Value = serde_json::from_str(&line)?;
            if answer["id"] == id {
                return Ok(answer);
            }
        }
    }

    fn call(&mut self, round: usize) -> Fallible<f64> {
        let since = Instant::now();
        let params = json!({"name": "run_command", "arguments": {"command": ["/bin/true"]}});
        let answer = self.ask("tools/call", round + 1, params)?;
        let took = since.elapsed().as_secs_f64() * 1000.0;
        match answer["result"]["structuredContent"]["status"] == "succeeded" {
            true => Ok(took),
            false => Err(answer.to_string().into()),
        }
    }

    fn end(mut self) -> Fallible {
        drop(self.input);
        match self.child.wait()?.success() {
            true => Ok(()),
            false => Err("the tools did not end well".into()),
        }
    }
}
