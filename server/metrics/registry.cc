#include "metrics/registry.h"

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <deque>

#include "base/check.h"

namespace metrics {
namespace {

class CounterOf final : public Counter {
 public:
  explicit CounterOf(prometheus::Counter& counter) : counter_(counter) {}
  void add(double amount) override { counter_.Increment(amount); }
  double value() const override { return counter_.Value(); }

 private:
  prometheus::Counter& counter_;
};

class HistogramOf final : public Histogram {
 public:
  explicit HistogramOf(prometheus::Histogram& histogram) : histogram_(histogram) {}
  void observe(double seconds) override { histogram_.Observe(seconds); }

 private:
  prometheus::Histogram& histogram_;
};

}  // namespace

std::vector<double> exponential_buckets(double start, double factor, int count) {
  std::vector<double> buckets;
  for (double limit = start; static_cast<int>(buckets.size()) < count; limit *= factor) buckets.push_back(limit);
  return buckets;
}

struct Registry::Impl {
  struct Asked {
    std::string name;
    std::string help;
    bool is_counter;
    std::vector<Label> labels;
    std::function<double()> read;
  };
  prometheus::Registry registry;
  std::deque<CounterOf> counters;
  std::deque<HistogramOf> histograms;
  std::vector<Asked> asked;
};

Registry::Registry() : impl_(std::make_unique<Impl>()) {}
Registry::~Registry() = default;

Counter& Registry::counter(const std::string& name, const std::string& help) {
  auto& family = prometheus::BuildCounter().Name(name).Help(help).Register(impl_->registry);
  return impl_->counters.emplace_back(family.Add({}));
}

Histogram& Registry::histogram(const std::string& name, const std::string& help, const std::vector<double>& buckets) {
  auto& family = prometheus::BuildHistogram().Name(name).Help(help).Register(impl_->registry);
  return impl_->histograms.emplace_back(family.Add({}, buckets));
}

void Registry::gauge(const std::string& name, const std::string& help, std::function<double()> read,
                     std::vector<Label> labels) {
  impl_->asked.push_back({name, help, false, std::move(labels), std::move(read)});
}

void Registry::counter_from(const std::string& name, const std::string& help, std::function<double()> read) {
  impl_->asked.push_back({name, help, true, {}, std::move(read)});
}

std::string Registry::text() const {
  std::vector<prometheus::MetricFamily> families = impl_->registry.Collect();
  for (const auto& asked : impl_->asked) {
    prometheus::ClientMetric metric;
    for (const auto& label : asked.labels) metric.label.push_back({label.name, label.value});
    (asked.is_counter ? metric.counter.value : metric.gauge.value) = asked.read();
    const auto type = asked.is_counter ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge;
    families.push_back({asked.name, asked.help, type, {std::move(metric)}});
  }
  std::sort(families.begin(), families.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace metrics
