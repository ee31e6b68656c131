//! Metrics as text that Prometheus reads.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::metrics::{BOUNDS, ToolMetrics};
use crate::telemetry::span_counts;

/// The metrics of these tools in the text format of `OpenMetrics`.
pub(super) fn text(tools: Vec<ToolMetrics>) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Tools(tools)));
    let mut text = String::new();
    // Writing into a string does not fail.
    let _ = encode(&mut text, &registry);
    text
}

#[derive(Debug)]
struct Tools(Vec<ToolMetrics>);

impl Collector for Tools {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let mut calls =
            encoder.encode_descriptor("hostler_tool_calls", "Ended calls by outcome.", None, MetricType::Counter)?;
        for tool in &self.0 {
            let succeeded = [("success", tool.succeeded)].into_iter();
            for (outcome, count) in succeeded.chain(tool.failures.iter().map(|(code, count)| (code.as_str(), *count))) {
                let labels = [("tool", tool.tool.as_str()), ("outcome", outcome)];
                calls.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
            }
        }
        let mut times = encoder.encode_descriptor(
            "hostler_tool_duration_seconds",
            "Time in the tool of calls that it began.",
            None,
            MetricType::Histogram,
        )?;
        for tool in &self.0 {
            let bounds = BOUNDS.into_iter().chain([f64::INFINITY]);
            let buckets: Vec<(f64, u64)> = bounds.zip(tool.times.buckets).collect();
            let labels = [("tool", tool.tool.as_str())];
            let mut family = times.encode_family(&labels)?;
            family.encode_histogram::<NoLabelSet>(tool.times.sum, tool.times.count, &buckets, None)?;
        }
        self.counter(&mut encoder, "queue_seconds", "Time that calls waited in the queue.", |tool| {
            tool.queue_ms / 1e3
        })?;
        #[expect(clippy::cast_precision_loss, reason = "the format's numbers are floats")]
        let cold = |tool: &ToolMetrics| tool.cold_starts as f64;
        self.counter(&mut encoder, "cold_starts", "Calls that waited for a worker to start.", cold)?;
        self.gauge(&mut encoder, "active", "Calls that run now.", |tool| Some(tool.active))?;
        self.gauge(&mut encoder, "queued", "Calls that wait now.", |tool| Some(tool.queued))?;
        let help = "Resident memory of the workers of the tool's file, which its other tools share.";
        self.gauge(&mut encoder, "memory_bytes", help, |tool| tool.memory)?;
        let help = "Spans of calls that a collector took, and those that were dropped.";
        let mut spans = encoder.encode_descriptor("hostler_spans", help, None, MetricType::Counter)?;
        let (exported, dropped) = span_counts();
        for (outcome, count) in [("exported", exported), ("dropped", dropped)] {
            spans.encode_family(&[("outcome", outcome)])?.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }
        Ok(())
    }
}

impl Tools {
    fn counter(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
        value: impl Fn(&ToolMetrics) -> f64,
    ) -> fmt::Result {
        let name = format!("hostler_tool_{name}");
        let mut metric = encoder.encode_descriptor(&name, help, None, MetricType::Counter)?;
        for tool in &self.0 {
            let labels = [("tool", tool.tool.as_str())];
            metric.encode_family(&labels)?.encode_counter::<NoLabelSet, _, f64>(&value(tool), None)?;
        }
        Ok(())
    }

    fn gauge(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
        value: impl Fn(&ToolMetrics) -> Option<usize>,
    ) -> fmt::Result {
        let name = format!("hostler_tool_{name}");
        let mut metric = encoder.encode_descriptor(&name, help, None, MetricType::Gauge)?;
        for (tool, value) in self.0.iter().filter_map(|tool| Some((tool, value(tool)?))) {
            let labels = [("tool", tool.tool.as_str())];
            metric.encode_family(&labels)?.encode_gauge(&i64::try_from(value).unwrap_or(i64::MAX))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::watch::metrics::Times;

    /// The samples of a name, as a parser reads them: the labels' values, and the number.
    fn samples(text: &str, name: &str) -> Vec<(Vec<String>, String)> {
        let line = regex::Regex::new(r#"^([a-z_]+)\{((?:[a-z]+="(?:[^"\\\n]|\\[\\"n])*",?)*)\} (\S+)$"#).unwrap();
        let label = regex::Regex::new(r#"="((?:[^"\\]|\\.)*)""#).unwrap();
        let read =
            |value: &str| value.replace("\\\\", "\0").replace("\\n", "\n").replace("\\\"", "\"").replace('\0', "\\");
        let mut found = Vec::new();
        for text in text.lines().filter(|line| !line.starts_with('#')) {
            let parts = line.captures(text).unwrap_or_else(|| panic!("not a sample: {text}"));
            if &parts[1] == name {
                let labels = label.captures_iter(&parts[2]).map(|value| read(&value[1])).collect();
                found.push((labels, parts[3].to_owned()));
            }
        }
        found
    }

    #[test]
    fn every_tool_has_its_samples_whatever_its_name() {
        let hostile = "a\\n\"} 1\n# TYPE x counter\nx{y=\"";
        let mut times = Times::default();
        for time in [0.0005, 0.001, 0.3, 1000.0] {
            times.add(time);
        }
        let called = ToolMetrics {
            tool: hostile.to_owned(),
            succeeded: 3,
            failures: [("BUSY".to_owned(), 1)].into(),
            queue_ms: 1500.0,
            active: 2,
            memory: Some(1 << 40),
            times,
            ..ToolMetrics::default()
        };
        let text = text(vec![called, ToolMetrics { tool: "b.c".to_owned(), ..ToolMetrics::default() }]);
        let one = |tool: &str, value: &str| (vec![tool.to_owned()], value.to_owned());
        let outcome = |tool: &str, code: &str, count: &str| (vec![tool.to_owned(), code.to_owned()], count.to_owned());
        assert_eq!(
            samples(&text, "hostler_tool_calls_total"),
            [outcome(hostile, "success", "3"), outcome(hostile, "BUSY", "1"), outcome("b.c", "success", "0")]
        );
        assert_eq!(samples(&text, "hostler_tool_queue_seconds_total"), [one(hostile, "1.5"), one("b.c", "0.0")]);
        assert_eq!(samples(&text, "hostler_tool_active"), [one(hostile, "2"), one("b.c", "0")]);
        assert_eq!(samples(&text, "hostler_tool_memory_bytes"), [one(hostile, "1099511627776")]);
        assert_eq!(samples(&text, "hostler_tool_duration_seconds_count"), [one(hostile, "4"), one("b.c", "0")]);
        let buckets = samples(&text, "hostler_tool_duration_seconds_bucket");
        let at = |bound: &str| buckets.iter().find(|(labels, _)| *labels == [bound, hostile]).unwrap().1.as_str();
        assert_eq!((at("0.001"), at("0.25"), at("0.5"), at("300.0"), at("+Inf")), ("2", "2", "3", "3", "4"));
        assert!(text.ends_with("# EOF\n"));
    }
}
