"""The data pipeline on Spark: a cluster's metadata log as tables. Needs the extra `kraftd[spark]`.

    from kraftd.spark.session import register
    register(spark)
    records = spark.read.format("kraft").load("/var/lib/kraft")
    records.where("type = 'ConfigRecord'").select("offset", "resource_name", "name", "value").show()

`fields` and `plans` define columns, `decode` fills them; `layout`, `planning` and `replicas` find the files
to read; `source` and `stream` are the data source; `kraftd-spark tables` writes `tables`.
"""
