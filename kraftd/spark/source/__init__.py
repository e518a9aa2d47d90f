"""The data source `kraft` of Spark: options, filters, tasks, and reads in batches and as a stream."""
