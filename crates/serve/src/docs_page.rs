//! The description as a page that reads well without a script.

use std::fmt::Write;

use serde_json::Value;

pub(crate) const FRONT: &str = concat!(
    "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Glovebox</title>",
    "<body><h1>Glovebox</h1><p>This server runs code of agents in sandboxes.</p>",
    "<p><a href=\"/docs\">The API</a> · <a href=\"/openapi.json\">openapi.json</a></p></html>",
);

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;\
padding:0 1rem;color:#1a1a1a;background:#fff}code,pre{font:14px/1.45 ui-monospace,monospace}\
pre{background:#f4f4f4;padding:.7rem;overflow:auto}table{border-collapse:collapse;width:100%}\
td,th{text-align:left;vertical-align:top;padding:.25rem .6rem .25rem 0;border-top:1px solid #ddd}\
h2{margin-top:3rem}h3{margin-top:2rem;font-size:1.05rem}.m{font-weight:700;text-transform:uppercase}\
summary{cursor:pointer}@media(prefers-color-scheme:dark){body{color:#eee;background:#161616}\
pre{background:#222}td,th{border-color:#444}a{color:#8ab4ff}}";

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

pub(crate) fn render(document: &Value) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut page, document);
    page
}

fn write_page(page: &mut String, document: &Value) -> std::fmt::Result {
    let info = &document["info"];
    write!(
        page,
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>Glovebox API</title><style>{STYLE}</style>\
         <body><h1>{} {}</h1>",
        text(&info["title"]),
        text(&info["version"])
    )?;
    for paragraph in info["description"]
        .as_str()
        .unwrap_or_default()
        .split("\n\n")
    {
        write!(page, "<p>{}</p>", prose(paragraph))?;
    }
    let mut operations = operations(document);
    operations.sort_by_key(|it| (tag(it.2).to_owned(), it.0.to_owned(), it.1));
    let mut current = String::new();
    page.push_str("<nav><ul>");
    for (path, method, operation) in &operations {
        let id = text(&operation["operationId"]);
        let (method, path) = (METHODS[*method], escape(path));
        write!(
            page,
            "<li><a href=\"#{id}\"><code>{method} {path}</code></a></li>"
        )?;
    }
    page.push_str("</ul></nav>");
    for (path, method, operation) in &operations {
        if current != tag(operation) {
            current = tag(operation).to_owned();
            write!(page, "<h2>{}</h2>", escape(&current))?;
        }
        write_operation(page, path, METHODS[*method], operation)?;
    }
    page.push_str("<h2>Shapes</h2>");
    for (name, schema) in document["components"]["schemas"]
        .as_object()
        .into_iter()
        .flatten()
    {
        let pretty = serde_json::to_string_pretty(schema).unwrap_or_default();
        write!(
            page,
            "<details id=\"shape-{0}\"><summary><code>{0}</code></summary><pre>{1}</pre></details>",
            escape(name),
            escape(&pretty)
        )?;
    }
    page.push_str("</body></html>");
    Ok(())
}

fn operations(document: &Value) -> Vec<(&str, usize, &Value)> {
    let paths = document["paths"].as_object().into_iter().flatten();
    paths
        .flat_map(|(path, methods)| {
            let each = METHODS.iter().enumerate();
            each.filter_map(|(index, method)| Some((path.as_str(), index, methods.get(*method)?)))
        })
        .collect()
}

fn tag(operation: &Value) -> &str {
    operation["tags"][0].as_str().unwrap_or("other")
}

fn write_operation(
    page: &mut String,
    path: &str,
    method: &str,
    operation: &Value,
) -> std::fmt::Result {
    write!(
        page,
        "<h3 id=\"{}\"><span class=\"m\">{method}</span> <code>{}</code> {}</h3>",
        text(&operation["operationId"]),
        escape(path),
        text(&operation["summary"])
    )?;
    if let Some(description) = operation["description"].as_str() {
        write!(page, "<p>{}</p>", prose(description))?;
    }
    page.push_str("<table>");
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        write!(
            page,
            "<tr><td><code>{}</code></td><td>{}</td><td>{}</td></tr>",
            text(&parameter["name"]),
            text(&parameter["in"]),
            prose(parameter["description"].as_str().unwrap_or_default())
        )?;
    }
    for (kind, content) in operation["requestBody"]["content"]
        .as_object()
        .into_iter()
        .flatten()
    {
        let shape = shape(&content["schema"]);
        write!(
            page,
            "<tr><td>body</td><td>{}</td><td>{shape}</td></tr>",
            escape(kind)
        )?;
    }
    for (status, response) in operation["responses"].as_object().into_iter().flatten() {
        let described = match response["$ref"].as_str() {
            Some(reference) => escape(reference.rsplit('/').next().unwrap_or_default()),
            None => prose(response["description"].as_str().unwrap_or_default()),
        };
        let shapes: Vec<String> = response["content"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(_, content)| shape(&content["schema"]))
            .collect();
        let shapes = shapes.join(" ");
        write!(
            page,
            "<tr><td>{status}</td><td>{described}</td><td>{shapes}</td></tr>"
        )?;
    }
    page.push_str("</table>");
    Ok(())
}

fn shape(schema: &Value) -> String {
    match schema["$ref"].as_str().and_then(|it| it.rsplit('/').next()) {
        Some(name) => format!("<a href=\"#shape-{0}\"><code>{0}</code></a>", escape(name)),
        None => schema["type"].as_str().map(escape).unwrap_or_default(),
    }
}

fn text(value: &Value) -> String {
    escape(value.as_str().unwrap_or_default())
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

/// Escaped, with `code` and **bold**.
fn prose(text: &str) -> String {
    let mut out = String::new();
    for (index, part) in escape(text).split('`').enumerate() {
        match index % 2 {
            0 => out.push_str(&bold(part)),
            _ => {
                // Writing to a string cannot fail.
                let _ = write!(out, "<code>{part}</code>");
            }
        }
    }
    out
}

fn bold(text: &str) -> String {
    let mut out = String::new();
    for (index, part) in text.split("**").enumerate() {
        match index % 2 {
            0 => out.push_str(part),
            _ => {
                // Writing to a string cannot fail.
                let _ = write!(out, "<b>{part}</b>");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_every_operation_and_runs_nothing() {
        let document = crate::document::value();
        let page = render(document);
        for (path, _, operation) in operations(document) {
            assert!(page.contains(&escape(path)));
            assert!(page.contains(&format!("id=\"{}\"", text(&operation["operationId"]))));
        }
        // An example may show an address; nothing leads there.
        for from_elsewhere in ["<script", "=\"http", "=http", "url(http", "@import"] {
            assert!(!page.contains(from_elsewhere), "{from_elsewhere}");
        }
    }

    #[test]
    fn nothing_gets_out_of_its_text() {
        assert_eq!(
            prose("a <b> `x<y` **z**"),
            "a &lt;b&gt; <code>x&lt;y</code> <b>z</b>"
        );
    }
}
