//! What agents get.

use glovebox_model::Result;

use crate::args::Global;
use crate::exit::Exit;
use crate::paint::Paint;
use crate::stdout;
use crate::table::Table;

pub(super) fn run(global: &Global) -> Result<Exit> {
    let tools = glovebox_mcp::tools();
    if global.json {
        stdout::json(&serde_json::json!({ "tools": tools }))?;
        return Ok(Exit::SUCCESS);
    }
    let mut table = Table::new(["TOOL", "WHAT IT DOES"]);
    for tool in &tools {
        let about = tool.description.as_deref().unwrap_or_default();
        let first = about.split_once(". ").map_or(about, |(first, _)| first);
        table.push([tool.name.as_ref().into(), first.into()]);
    }
    stdout::text(&table.text(Paint::on(&std::io::stdout())))?;
    Ok(Exit::SUCCESS)
}
