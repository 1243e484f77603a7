// The server's metrics: etcd's names where etcd has the thing, so that its dashboards and alerts work. A thin front of
// prometheus-cpp: counters and histograms are bumped where things happen (any thread), gauges are asked for at a
// scrape.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace metrics {

class Counter {
 public:
  virtual ~Counter() = default;
  virtual void add(double amount = 1) = 0;
  virtual double value() const = 0;
};

class Gauge {
 public:
  virtual ~Gauge() = default;
  virtual void set(double value) = 0;
  virtual double value() const = 0;
};

class Histogram {
 public:
  virtual ~Histogram() = default;
  virtual void observe(double seconds) = 0;
};

// Bucket limits: `count` of them from `start` on, each `factor` times the one before.
std::vector<double> exponential_buckets(double start, double factor, int count);

struct Label {
  std::string name;
  std::string value;
};

class Registry {
 public:
  Registry();
  ~Registry();

  // Any thread, at any time: members come and go, and have labels of their own. Asked again for the same name and
  // labels, a fresh reference to the same numbers comes back. References live as long as the registry.
  Counter& counter(const std::string& name, const std::string& help, const std::vector<Label>& labels = {});
  Histogram& histogram(const std::string& name, const std::string& help, const std::vector<double>& buckets,
                       const std::vector<Label>& labels = {});
  // A gauge that is set where things happen, as opposed to one that is asked for.
  Gauge& level(const std::string& name, const std::string& help, const std::vector<Label>& labels = {});

  // These before the first scrape. `read` is called at each scrape, on the scraping thread. One name with several
  // label sets is one family.
  void gauge(const std::string& name, const std::string& help, std::function<double()> read,
             std::vector<Label> labels = {});
  void counter_from(const std::string& name, const std::string& help, std::function<double()> read);
  void add_process_metrics();  // process_*: memory, processor time, descriptors, start

  std::string text() const;  // Prometheus text format 0.0.4

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace metrics
