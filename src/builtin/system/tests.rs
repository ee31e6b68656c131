use serde_json::{Value, json};

use super::logs::{Params, last_lines};
use super::metrics::read_gpus;
use crate::builtin::testing::Bench;
use crate::outcome::Code;

fn bench() -> Bench {
    Bench::of(|tools, _| super::add(tools))
}

#[tokio::test]
async fn a_snapshot_describes_this_machine() {
    let found = bench().call("system_metrics_snapshot", json!({})).await.unwrap();
    let processors = std::thread::available_parallelism().unwrap().get();
    assert!(found["cpu"]["count"].as_u64().unwrap() >= processors as u64, "{found}");
    let memory = |key: &str| found["memory"][key].as_u64().unwrap();
    assert!(memory("total") > 1 << 26 && memory("available") <= memory("total") && memory("used") > 0, "{found}");
    assert!(found["uptime_s"].as_u64().unwrap() > 0 && found["cpu"]["load"].as_array().unwrap().len() == 3, "{found}");
}

#[test]
fn the_output_of_a_graphics_driver_is_parsed() {
    let found = read_gpus("NVIDIA A100, 37, 40960, 1024, 41\nOdd, [N/A], 1, [N/A], [N/A]\nnonsense\n");
    let found = serde_json::to_value(found).unwrap();
    let expected = json!([
        {"name": "NVIDIA A100", "used_percent": 37.0, "memory_total": 42_949_672_960_u64, "memory_used": 1_073_741_824, "temperature": 41.0},
        {"name": "Odd", "used_percent": 0.0, "memory_total": 1_048_576, "memory_used": 0}
    ]);
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_program_that_runs_is_found_and_another_is_not() {
    let bench = bench();
    let own = std::process::id();
    let found = bench.call("check_process_health", json!({"pid": own})).await.unwrap();
    assert_eq!((&found["running"], &found["processes"][0]["pid"]), (&json!(true), &json!(own)));
    assert!(found["processes"][0]["memory"].as_u64().unwrap() > 0, "{found}");
    let none: Value = bench.call("check_process_health", json!({"name": "no-such-program"})).await.unwrap();
    assert_eq!(none, json!({"running": false, "processes": [], "total": 0}));
    bench.fails("check_process_health", json!({}), Code::InvalidParams, "`name`").await;
}

#[tokio::test]
async fn the_last_matching_lines_are_returned() {
    let wanted = |lines, text: Option<&str>| Params { lines, since: "1h".to_owned(), text: text.map(str::to_owned) };
    assert_eq!(last_lines("a\nb\nc\n", &wanted(2, None)), ["b", "c"]);
    assert_eq!(last_lines("ab\nb\ncb\nd\n", &wanted(2, Some("b"))), ["b", "cb"]);
    bench().fails("read_system_logs", json!({"since": "yesterday"}), Code::InvalidParams, "yesterday").await;
}
