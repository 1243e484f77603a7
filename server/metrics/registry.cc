#include "metrics/registry.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <deque>

#include "base/check.h"
#include "base/thread.h"

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

class GaugeOf final : public Gauge {
 public:
  explicit GaugeOf(prometheus::Gauge& gauge) : gauge_(gauge) {}
  void set(double value) override { gauge_.Set(value); }
  double value() const override { return gauge_.Value(); }

 private:
  prometheus::Gauge& gauge_;
};

class HistogramOf final : public Histogram {
 public:
  explicit HistogramOf(prometheus::Histogram& histogram) : histogram_(histogram) {}
  void observe(double seconds) override { histogram_.Observe(seconds); }

 private:
  prometheus::Histogram& histogram_;
};

prometheus::Labels labels_of(const std::vector<Label>& labels) {
  prometheus::Labels out;
  for (const Label& label : labels) out.emplace(label.name, label.value);
  return out;
}

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
  prometheus::Registry registry;  // has its own lock
  Mutex mutex;
  std::deque<CounterOf> counters GUARDED_BY(mutex);
  std::deque<GaugeOf> levels GUARDED_BY(mutex);
  std::deque<HistogramOf> histograms GUARDED_BY(mutex);
  std::vector<Asked> asked;
};

Registry::Registry() : impl_(std::make_unique<Impl>()) {}
Registry::~Registry() = default;

Counter& Registry::counter(const std::string& name, const std::string& help, const std::vector<Label>& labels) {
  auto& family = prometheus::BuildCounter().Name(name).Help(help).Register(impl_->registry);
  MutexLock lock(impl_->mutex);
  return impl_->counters.emplace_back(family.Add(labels_of(labels)));
}

Gauge& Registry::level(const std::string& name, const std::string& help, const std::vector<Label>& labels) {
  auto& family = prometheus::BuildGauge().Name(name).Help(help).Register(impl_->registry);
  MutexLock lock(impl_->mutex);
  return impl_->levels.emplace_back(family.Add(labels_of(labels)));
}

Histogram& Registry::histogram(const std::string& name, const std::string& help, const std::vector<double>& buckets,
                               const std::vector<Label>& labels) {
  auto& family = prometheus::BuildHistogram().Name(name).Help(help).Register(impl_->registry);
  MutexLock lock(impl_->mutex);
  return impl_->histograms.emplace_back(family.Add(labels_of(labels), buckets));
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
    const auto same = [&](const auto& family) { return family.name == asked.name; };
    const auto family = std::find_if(families.begin(), families.end(), same);
    if (family == families.end()) {
      families.push_back({asked.name, asked.help, type, {std::move(metric)}});
    } else {
      CHECK(family->type == type, asked.name);
      family->metric.push_back(std::move(metric));
    }
  }
  std::sort(families.begin(), families.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace metrics
