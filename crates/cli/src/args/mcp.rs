//! Glovebox as an agent's tools.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use glovebox_model::{ProjectId, Settings};

/// Serve tools to an agent, by MCP on standard input and output
///
/// MCP is the Model Context Protocol. An agent's host starts this, from the directory that it works
/// on; `glovebox mcp install` tells a host about it. That directory is the agent's workspace, each
/// thing it runs has a sandbox of its own, policy and approvals hold as everywhere, and no server is
/// needed. Where people have to agree they are asked in the host if it can ask them.
///
/// Hosts that speak HTTP can use a server instead: `glovebox serve` has the same tools at `/mcp`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  glovebox mcp install claude
  glovebox mcp install cursor --project-file --dry-run
  glovebox mcp tools
  glovebox mcp --directory ~/work/site
  glovebox mcp --project demo --config team.toml")]
pub(crate) struct McpCommand {
    #[command(subcommand)]
    pub(crate) verb: Option<McpVerb>,
    #[command(flatten)]
    pub(crate) serve: McpServeArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum McpVerb {
    Install(McpInstallArgs),
    Tools(McpToolsArgs),
}

#[derive(Debug, Args)]
pub(crate) struct McpServeArgs {
    /// The directory that the agent works on, instead of the current one
    #[arg(long, short = 'C', value_name = "DIR", conflicts_with = "project")]
    pub(crate) directory: Option<PathBuf>,
    /// A workspace that Glovebox keeps, instead of a directory
    #[arg(long, value_name = "NAME")]
    pub(crate) project: Option<ProjectId>,
    /// What the agent is called in records and policy (`[agent.NAME]`)
    #[arg(long, value_name = "NAME", default_value = "mcp")]
    pub(crate) agent: String,
    /// Execs at one time that no setting goes above
    #[arg(long, value_name = "N", default_value_t = Settings::CONCURRENT_CEILING)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) max_concurrent: u32,
}

/// Tell an agent's host about Glovebox
///
/// Shows what it would change and asks first. What else is in the host's file stays as it is.
///
/// With `--server`, or with `GLOVEBOX_SERVER` in the environment, the host is told to ask that server
/// instead of starting this program; a project's file is written from `--server` alone.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox mcp install claude
  glovebox mcp install claude --project-file    .mcp.json, for everybody who works here
  glovebox mcp install codex --dry-run
  glovebox mcp install vscode --yes
  glovebox mcp install cursor --server http://127.0.0.1:7070")]
pub(crate) struct McpInstallArgs {
    /// Which one
    #[arg(value_enum)]
    pub(crate) host: AgentHost,
    /// Into the file of this directory's project, instead of your own settings
    #[arg(long)]
    pub(crate) project_file: bool,
    /// What it is called there
    #[arg(long, value_name = "NAME", default_value = "glovebox")]
    pub(crate) name: String,
    /// The workspace that its agent works in, instead of the directory that the host has open
    #[arg(long, value_name = "PROJECT")]
    pub(crate) project: Option<ProjectId>,
    /// Show it and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AgentHost {
    Claude,
    Cursor,
    Codex,
    Vscode,
}

/// List the tools that agents get
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  glovebox mcp tools
  glovebox mcp tools --json | jq -r '.tools[].name'")]
pub(crate) struct McpToolsArgs {}
