//! What holding a call's arguments to their schema costs, without anything around it: the schema is compiled once.

use std::fs;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use hostler::bench::{Registry, Tool, validate_arguments};
use hostler::{Code, Config, ConfigOptions};
use serde_json::{Value, json};

use crate::Fallible;
use crate::ground::Ground;
use crate::sample::median;
use crate::table::{Measured, Target, rounded};

/// Arguments of every usual kind, one of them a class of its own.
const TOOL: &str = r#"
from dataclasses import dataclass
from datetime import date
from typing import Literal, Optional


@dataclass
class Address:
    street: str
    town: str
    number: int = 1


def order(
    customer: str,
    count: int,
    price: float,
    express: bool,
    day: date,
    unit: Literal["piece", "box", "pallet"],
    tags: list[str],
    weights: dict[str, float],
    address: Address,
    note: Optional[str] = None,
) -> str:
    """Order something."""
    return customer
"#;

/// How many are validated between two looks at the clock, which would cost as much as one of them.
const BATCH: u32 = 1000;

pub fn validation(ground: &Ground) -> Fallible<Vec<Measured>> {
    let tool = tool(ground)?;
    sound(&tool)?;
    let mut times = Vec::new();
    for _ in 0..ground.counts.rounds * 10 {
        let mut batch: Vec<Value> = (0..BATCH).map(arguments).collect();
        let began = Instant::now();
        let right =
            batch.iter_mut().filter_map(|arguments| validate_arguments(&tool, black_box(arguments)).ok()).count();
        times.push(began.elapsed().as_secs_f64() * 1e6 / f64::from(BATCH));
        if right != batch.len() {
            return Err(format!("{right} of {BATCH} right arguments were taken").into());
        }
    }
    let worst = times.iter().copied().fold(0.0, f64::max);
    let from = format!("slowest batch {} µs of {}", rounded(worst), times.len());
    let what = "arguments of ten fields against their schema";
    Ok(vec![Measured::against(what, median(times), " µs", Target::AtMost(5.0), Target::Open).from(from)])
}

fn tool(ground: &Ground) -> Fallible<Arc<Tool>> {
    let folder = ground.folder("validate");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("shop.py"), TOOL)?;
    let wanted = ConfigOptions { tools: vec![folder.clone()], ..ConfigOptions::default() };
    let registry = Registry::open(Arc::new(Config::load(&wanted, &folder)?));
    registry.find("shop.order").map_err(|_| "shop.order is not listed".into())
}

fn arguments(number: u32) -> Value {
    json!({
        "customer": format!("customer {number}"), "count": number, "price": 2.5, "express": number > 500,
        "day": "2026-07-28", "unit": "box", "tags": ["a", "b", "c"], "weights": {"left": 1.5, "right": 2},
        "address": {"street": "High Street", "town": "Leeds", "number": number}, "note": null,
    })
}

/// What is quick because it looks at nothing would be quick for nothing: one wrong field is refused, whichever it is.
fn sound(tool: &Tool) -> Fallible<()> {
    let right = arguments(1);
    validate_arguments(tool, &mut right.clone()).map_err(|fault| fault.to_string())?;
    let fields = right.as_object().ok_or("no object")?;
    if fields.len() != 10 {
        return Err(format!("{} fields instead of ten", fields.len()).into());
    }
    for name in fields.keys() {
        let mut wrong = right.clone();
        wrong[name] = json!([{}]);
        match validate_arguments(tool, &mut wrong) {
            Err(fault) if fault.code == Code::InvalidParams && fault.message.contains(name) => {}
            other => return Err(format!("a wrong `{name}` gave {other:?}").into()),
        }
    }
    Ok(())
}
