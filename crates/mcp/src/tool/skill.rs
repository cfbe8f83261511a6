//! Skills as tools: each is there under `skill.<id>`, with its own schemas.

use glovebox_api::{SkillAnswer, SkillInfo, SkillList};
use glovebox_model::{Error, ExecId};
use rmcp::model::{CallToolResponse, JsonObject, Tool as Described, ToolAnnotations};
use serde_json::{Value, json};

use super::program::{put, task_ref, window};
use crate::answer::{Answer, Done, Stop, response, told};
use crate::api::Call;
use crate::fence::{NOTE, WINDOW_MOST, cut, fenced};
use crate::follow::{self, Asked, Part};
use crate::task::Task;

pub(crate) const PREFIX: &str = "skill.";

pub(crate) async fn list(task: &Task) -> Result<Vec<Described>, Error> {
    let listed: SkillList = task.ask(Call::get("/v1/skills")).await?;
    let allowed = listed.skills.into_iter().filter(|it| it.allowed);
    Ok(allowed.map(describe).collect())
}

fn describe(skill: SkillInfo) -> Described {
    let mut described = Described::default();
    described.name = format!("{PREFIX}{}", skill.id).into();
    described.title = Some(skill.name.clone());
    described.description = Some(skill.description.into());
    described.input_schema = object(skill.inputs).into();
    // A client may hold us to it, so only what every answer has: an object.
    described.output_schema = Some(object(skill.outputs).into());
    // What it leaves in its artifacts is nobody's before.
    let writes = skill
        .permissions
        .pointer("/fs/write")
        .and_then(Value::as_array);
    let work = |it: &Value| it.as_str().is_some_and(|it| it.starts_with("work"));
    let changes = writes.is_none_or(|it| it.iter().any(work));
    described.annotations = Some(ToolAnnotations::from_raw(
        Some(skill.name),
        Some(!changes),
        Some(changes),
        Some(!changes),
        Some(false),
    ));
    described
}

fn object(schema: Value) -> JsonObject {
    match schema {
        Value::Object(object) if object.get("type") == Some(&json!("object")) => object,
        _ => JsonObject::from_iter([("type".to_owned(), json!("object"))]),
    }
}

pub(crate) async fn call(id: &str, inputs: Value, task: &Task) -> CallToolResponse {
    response(invoke(id, inputs, task).await)
}

async fn invoke(id: &str, inputs: Value, task: &Task) -> Done<Value> {
    let of_exec = |exec: &ExecId| Call::get("/v1/execs").segment(exec.as_str());
    let taken = match task.resumed::<Asked>()? {
        Some(asked) => task.ask(of_exec(&asked.exec_id)).await?,
        None => {
            let mut body = json!({"inputs": inputs, "project_id": task.project, "wait": false});
            put(&mut body, "task_ref", task_ref(task));
            let route = Call::post("/v1/skills").segment(id).then("/invoke");
            task.ask::<SkillAnswer>(route.json(&body)?).await?.exec
        }
    };
    let ended = follow::to_end(task, taken, window(None), Part::Began).await?;
    // Who waits has printed nothing, and an answer would have to be one of the skill.
    if !ended.value.status.is_final() {
        return Err(Stop::Told(ended.text));
    }
    let exec = ended.value.exec_id.clone();
    let invoked: SkillAnswer = task.ask(of_exec(&exec).then("/output")).await?;
    if let value @ Value::Object(_) = invoked.output
        && invoked.output_valid != Some(false)
    {
        let shown = serde_json::to_string_pretty(&value).unwrap_or_default();
        if shown.len() > WINDOW_MOST {
            let cut = cut(&shown, window(None)).text;
            let text = format!(
                "{NOTE}\n{}next: the output is larger than {WINDOW_MOST} bytes; `exec_output` with \
                 exec_id `{exec}` and `{}` have it\n",
                fenced(&format!("a part of the output of `{id}`"), &cut),
                crate::resource::artifact_uri(exec.as_str(), "output.json"),
            );
            return Err(Stop::Told(text));
        }
        let what = format!("output of `{id}` ({}, {exec})", ended.value.status);
        let text = format!("{NOTE}\n{}", fenced(&what, &cut(&shown, window(None)).text));
        return Ok(Answer {
            value,
            text,
            links: ended.links,
            failed: ended.failed,
        });
    }
    // Without an output that fits there is only what became of it, in its own words.
    let error = invoked.output_error.or(invoked.exec.error);
    let wrong = error.filter(|_| !ended.failed).map(|it| told(&it));
    Err(Stop::Told(wrong.unwrap_or_default() + &ended.text))
}
