//! What `docker save` writes: a list of images, each with its configuration and its layers as
//! files. The layers are checked against the configuration, so nothing else needs a digest.

use std::collections::BTreeSet;

use glovebox_model::Result;
use serde::Deserialize;

use super::bundle::Bundle;
use super::oci::{Assembled, Plan, assemble, for_others, parse};
use super::unfit;

const LIST: &str = "manifest.json";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Saved {
    config: String,
    layers: Option<Vec<String>>,
}

pub(super) fn plan(bundle: &Bundle) -> Result<Plan> {
    let list: Vec<Saved> = parse(LIST, &bundle.document(LIST)?)?;
    let saved = match <[Saved; 1]>::try_from(list) {
        Ok([saved]) => saved,
        Err(list) => {
            return Err(unfit(format!("there are {} images in it", list.len()))
                .hint("save one image alone"));
        }
    };
    let text = bundle.document(&saved.config)?;
    let layers = saved.layers.unwrap_or_default();
    let layers = layers.into_iter().map(|file| (file, None)).collect();
    match assemble(&text, layers)? {
        Assembled::Fits(plan) => Ok(plan),
        Assembled::ForAnother(platform) => Err(for_others(&BTreeSet::from([platform]))),
    }
}
