"""TPC-H: schema, data and the 22 queries, written from the specification.

The data is small and made here (seeded): the same tables, keys, value lists and skew as dbgen's, denser in what the queries pick, so that each query
has rows at a few thousand line items. `ORDERS_MADE` at scale 1 is 1,500 orders with about 6,000 line items.

Not here: loading and comparing (tests/test_tpch.py).
"""

import datetime
import random

TABLES = {
    "region": "r_regionkey int PRIMARY KEY, r_name text NOT NULL, r_comment text",
    "nation": "n_nationkey int PRIMARY KEY, n_name text NOT NULL, n_regionkey int NOT NULL, n_comment text",
    "supplier": "s_suppkey int PRIMARY KEY, s_name text NOT NULL, s_address text NOT NULL, s_nationkey int NOT NULL, s_phone text NOT NULL, "
                "s_acctbal numeric(15,2) NOT NULL, s_comment text NOT NULL",
    "part": "p_partkey int PRIMARY KEY, p_name text NOT NULL, p_mfgr text NOT NULL, p_brand text NOT NULL, p_type text NOT NULL, p_size int NOT NULL, "
            "p_container text NOT NULL, p_retailprice numeric(15,2) NOT NULL, p_comment text NOT NULL",
    "partsupp": "ps_partkey int NOT NULL, ps_suppkey int NOT NULL, ps_availqty int NOT NULL, ps_supplycost numeric(15,2) NOT NULL, "
                "ps_comment text NOT NULL, PRIMARY KEY (ps_partkey, ps_suppkey)",
    "customer": "c_custkey int PRIMARY KEY, c_name text NOT NULL, c_address text NOT NULL, c_nationkey int NOT NULL, c_phone text NOT NULL, "
                "c_acctbal numeric(15,2) NOT NULL, c_mktsegment text NOT NULL, c_comment text NOT NULL",
    "orders": "o_orderkey int PRIMARY KEY, o_custkey int NOT NULL, o_orderstatus char(1) NOT NULL, o_totalprice numeric(15,2) NOT NULL, o_orderdate date NOT NULL, "
              "o_orderpriority text NOT NULL, o_clerk text NOT NULL, o_shippriority int NOT NULL, o_comment text NOT NULL",
    "lineitem": "l_orderkey int NOT NULL, l_partkey int NOT NULL, l_suppkey int NOT NULL, l_linenumber int NOT NULL, l_quantity numeric(15,2) NOT NULL, "
                "l_extendedprice numeric(15,2) NOT NULL, l_discount numeric(15,2) NOT NULL, l_tax numeric(15,2) NOT NULL, l_returnflag char(1) NOT NULL, "
                "l_linestatus char(1) NOT NULL, l_shipdate date NOT NULL, l_commitdate date NOT NULL, l_receiptdate date NOT NULL, l_shipinstruct char(25) NOT NULL, "
                "l_shipmode char(10) NOT NULL, l_comment text NOT NULL, PRIMARY KEY (l_orderkey, l_linenumber)",
}

REGIONS = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"]
NATIONS = [("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0), ("FRANCE", 3), ("GERMANY", 3), ("INDIA", 2),
           ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4), ("KENYA", 0), ("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2),
           ("ROMANIA", 3), ("SAUDI ARABIA", 4), ("VIETNAM", 2), ("RUSSIA", 3), ("UNITED KINGDOM", 3), ("UNITED STATES", 1)]
# Half of all keys fall on nations that queries name.
BUSY = [6, 7, 2, 3, 20, 23, 8, 12]
SEGMENTS = ["AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD"]
PRIORITIES = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"]
MODES = ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"]
INSTRUCTIONS = ["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"]
COLORS = ["almond", "antique", "forest", "green", "lemon", "navy", "olive", "peru", "red", "sky"]
TYPES = [f"{a} {b} {c}" for a in ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO")
         for b in ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED") for c in ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER")]
CONTAINERS = [f"{a} {b}" for a in ("SM", "LG", "MED", "JUMBO", "WRAP") for b in ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM")]
FIRST, LAST, TODAY = datetime.date(1992, 1, 1), datetime.date(1998, 8, 2), datetime.date(1995, 6, 17)
ORDERS_MADE = 1500


class Data:
    """All rows, by table; orders come with their line items and more can be made."""

    def __init__(self, scale: float = 1, seed: int = 1):
        self.rng = random.Random(seed)
        self.customers, self.parts, self.suppliers = int(150 * scale) or 1, int(200 * scale) or 1, int(20 * scale) or 1
        rng = self.rng
        self.rows = {t: [] for t in TABLES}
        self.rows["region"] = [(i, r, self.words(3)) for i, r in enumerate(REGIONS)]
        self.rows["nation"] = [(i, n, r, self.words(3)) for i, (n, r) in enumerate(NATIONS)]
        for k in range(1, self.suppliers + 1):
            n = self.nation()
            comment = self.words(5) + (" Customer Complaints" if rng.random() < 0.1 else "")
            self.rows["supplier"].append((k, f"Supplier#{k:09}", self.words(2), n, self.phone(n), self.money(-999, 9999), comment))
        for k in range(1, self.parts + 1):
            name = " ".join(rng.sample(COLORS, 3))
            m = rng.randint(1, 5)
            self.rows["part"].append((k, name, f"Manufacturer#{m}", f"Brand#{m}{rng.randint(1, 5)}", rng.choice(TYPES), rng.choice([15, 15, rng.randint(1, 50)]),
                                      rng.choice(CONTAINERS), self.money(900, 1100), self.words(2)))
            for s in rng.sample(range(1, self.suppliers + 1), min(4, self.suppliers)):
                self.rows["partsupp"].append((k, s, rng.randint(1, 9999), self.money(1, 1000), self.words(4)))
        self.supplied = {}
        for p, s, *_ in self.rows["partsupp"]:
            self.supplied.setdefault(p, []).append(s)
        for k in range(1, self.customers + 1):
            n = self.nation()
            self.rows["customer"].append((k, f"Customer#{k:09}", self.words(2), n, self.phone(n), self.money(-999, 9999), rng.choice(SEGMENTS), self.words(5)))
        self.next_order = 1
        for _ in range(int(ORDERS_MADE * scale)):
            order, items = self.order()
            self.rows["orders"].append(order)
            self.rows["lineitem"].extend(items)

    def nation(self) -> int:
        return self.rng.choice(BUSY) if self.rng.random() < 0.5 else self.rng.randrange(25)

    def words(self, n: int) -> str:
        return " ".join(self.rng.choice(["special", "requests", "pending", "quick", "deposits", "ironic", "bold", "final", "accounts", "sleep"]) for _ in range(n))

    def money(self, low: int, high: int) -> str:
        return f"{self.rng.randint(low * 100, high * 100) / 100:.2f}"

    def phone(self, nation: int) -> str:
        return f"{10 + nation}-{self.rng.randint(100, 999)}-{self.rng.randint(100, 999)}-{self.rng.randint(1000, 9999)}"

    def order(self):
        """One more order and its line items. A third of the customers never order, as in the specification."""
        rng, key = self.rng, self.next_order
        self.next_order += 1
        customer = rng.randint(1, self.customers)
        while customer % 3 == 0 and self.customers > 3:
            customer = rng.randint(1, self.customers)
        date = FIRST + datetime.timedelta(days=rng.randrange((LAST - FIRST).days - 121))
        items, total, open_items = [], 0, 0
        count = rng.randint(1, 7)
        for line in range(1, count + 1):
            part = rng.randint(1, self.parts)
            quantity = rng.randint(1, 50)
            price = quantity * int(float(self.rows["part"][part - 1][7]) * 100)
            ship = date + datetime.timedelta(days=rng.randint(1, 121))
            commit = date + datetime.timedelta(days=rng.randint(30, 90))
            receipt = ship + datetime.timedelta(days=rng.randint(1, 30))
            discount, tax = rng.randint(0, 10), rng.randint(0, 8)
            total += price * (100 - discount) * (100 + tax) // 10000
            flag = rng.choice("RA") if receipt <= TODAY else "N"
            open_items += ship > TODAY
            items.append((key, part, rng.choice(self.supplied[part]), line, f"{quantity}.00", f"{price / 100:.2f}", f"0.{discount:02}", f"0.{tax:02}", flag,
                          "O" if ship > TODAY else "F", ship, commit, receipt, rng.choice(INSTRUCTIONS), rng.choice(MODES), self.words(3)))
        status = "F" if not open_items else "O" if open_items == count else "P"
        comment = "special handling requests" if rng.random() < 0.1 else self.words(5)
        return (key, customer, status, f"{total / 100:.2f}", date, rng.choice(PRIORITIES), f"Clerk#{rng.randint(1, 10):09}", 0, comment), items


def insert(table: str, rows: list[tuple]) -> str:
    def literal(v):
        return str(v) if isinstance(v, int) else "'" + str(v).replace("'", "''") + "'"

    return f"INSERT INTO {table} VALUES " + ", ".join("(" + ", ".join(map(literal, r)) + ")" for r in rows)


QUERIES = {
    1: """SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty, sum(l_extendedprice) AS sum_base_price,
            sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price, sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge,
            avg(l_quantity) AS avg_qty, avg(l_extendedprice) AS avg_price, avg(l_discount) AS avg_disc, count(*) AS count_order
          FROM lineitem WHERE l_shipdate <= date '1998-12-01' - interval '90' day
          GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus""",
    2: """SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
          FROM part, supplier, partsupp, nation, region
          WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND p_size = 15 AND p_type LIKE '%BRASS' AND s_nationkey = n_nationkey
            AND n_regionkey = r_regionkey AND r_name = 'EUROPE'
            AND ps_supplycost = (SELECT min(ps_supplycost) FROM partsupp, supplier, nation, region
                                 WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'EUROPE')
          ORDER BY s_acctbal DESC, n_name, s_name, p_partkey LIMIT 100""",
    3: """SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
          FROM customer, orders, lineitem
          WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate < date '1995-03-15' AND l_shipdate > date '1995-03-15'
          GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate, l_orderkey LIMIT 10""",
    4: """SELECT o_orderpriority, count(*) AS order_count FROM orders
          WHERE o_orderdate >= date '1993-07-01' AND o_orderdate < date '1993-07-01' + interval '3' month
            AND EXISTS (SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
          GROUP BY o_orderpriority ORDER BY o_orderpriority""",
    5: """SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue
          FROM customer, orders, lineitem, supplier, nation, region
          WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey
            AND n_regionkey = r_regionkey AND r_name = 'ASIA' AND o_orderdate >= date '1994-01-01' AND o_orderdate < date '1994-01-01' + interval '1' year
          GROUP BY n_name ORDER BY revenue DESC""",
    6: """SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem
          WHERE l_shipdate >= date '1994-01-01' AND l_shipdate < date '1994-01-01' + interval '1' year AND l_discount BETWEEN 0.06 - 0.01 AND 0.06 + 0.01 AND l_quantity < 24""",
    7: """SELECT supp_nation, cust_nation, l_year, sum(volume) AS revenue
          FROM (SELECT n1.n_name AS supp_nation, n2.n_name AS cust_nation, extract(year FROM l_shipdate) AS l_year, l_extendedprice * (1 - l_discount) AS volume
                FROM supplier, lineitem, orders, customer, nation n1, nation n2
                WHERE s_suppkey = l_suppkey AND o_orderkey = l_orderkey AND c_custkey = o_custkey AND s_nationkey = n1.n_nationkey AND c_nationkey = n2.n_nationkey
                  AND ((n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY') OR (n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE'))
                  AND l_shipdate BETWEEN date '1995-01-01' AND date '1996-12-31') AS shipping
          GROUP BY supp_nation, cust_nation, l_year ORDER BY supp_nation, cust_nation, l_year""",
    8: """SELECT o_year, sum(CASE WHEN nation = 'BRAZIL' THEN volume ELSE 0 END) / sum(volume) AS mkt_share
          FROM (SELECT extract(year FROM o_orderdate) AS o_year, l_extendedprice * (1 - l_discount) AS volume, n2.n_name AS nation
                FROM part, supplier, lineitem, orders, customer, nation n1, nation n2, region
                WHERE p_partkey = l_partkey AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey AND o_custkey = c_custkey AND c_nationkey = n1.n_nationkey
                  AND n1.n_regionkey = r_regionkey AND r_name = 'AMERICA' AND s_nationkey = n2.n_nationkey AND o_orderdate BETWEEN date '1995-01-01' AND date '1996-12-31'
                  AND p_type LIKE '%STEEL') AS all_nations
          GROUP BY o_year ORDER BY o_year""",
    9: """SELECT nation, o_year, sum(amount) AS sum_profit
          FROM (SELECT n_name AS nation, extract(year FROM o_orderdate) AS o_year, l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity AS amount
                FROM part, supplier, lineitem, partsupp, orders, nation
                WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey AND p_partkey = l_partkey AND o_orderkey = l_orderkey
                  AND s_nationkey = n_nationkey AND p_name LIKE '%green%') AS profit
          GROUP BY nation, o_year ORDER BY nation, o_year DESC""",
    10: """SELECT c_custkey, c_name, sum(l_extendedprice * (1 - l_discount)) AS revenue, c_acctbal, n_name, c_address, c_phone, c_comment
           FROM customer, orders, lineitem, nation
           WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate >= date '1993-10-01' AND o_orderdate < date '1993-10-01' + interval '3' month
             AND l_returnflag = 'R' AND c_nationkey = n_nationkey
           GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment ORDER BY revenue DESC, c_custkey LIMIT 20""",
    11: """SELECT ps_partkey, sum(ps_supplycost * ps_availqty) AS value FROM partsupp, supplier, nation
           WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY'
           GROUP BY ps_partkey HAVING sum(ps_supplycost * ps_availqty) > (SELECT sum(ps_supplycost * ps_availqty) * 0.01 FROM partsupp, supplier, nation
                                                                         WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY')
           ORDER BY value DESC""",
    12: """SELECT l_shipmode, sum(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH' THEN 1 ELSE 0 END) AS high_line_count,
             sum(CASE WHEN o_orderpriority <> '1-URGENT' AND o_orderpriority <> '2-HIGH' THEN 1 ELSE 0 END) AS low_line_count
           FROM orders, lineitem
           WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate
             AND l_receiptdate >= date '1994-01-01' AND l_receiptdate < date '1994-01-01' + interval '1' year
           GROUP BY l_shipmode ORDER BY l_shipmode""",
    13: """SELECT c_count, count(*) AS custdist
           FROM (SELECT c_custkey, count(o_orderkey) FROM customer LEFT OUTER JOIN orders ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%'
                 GROUP BY c_custkey) AS c_orders (c_custkey, c_count)
           GROUP BY c_count ORDER BY custdist DESC, c_count DESC""",
    14: """SELECT 100.00 * sum(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END) / sum(l_extendedprice * (1 - l_discount)) AS promo_revenue
           FROM lineitem, part WHERE l_partkey = p_partkey AND l_shipdate >= date '1995-09-01' AND l_shipdate < date '1995-09-01' + interval '1' month""",
    15: """WITH revenue (supplier_no, total_revenue) AS (
             SELECT l_suppkey, sum(l_extendedprice * (1 - l_discount)) FROM lineitem
             WHERE l_shipdate >= date '1996-01-01' AND l_shipdate < date '1996-01-01' + interval '3' month GROUP BY l_suppkey)
           SELECT s_suppkey, s_name, s_address, s_phone, total_revenue FROM supplier, revenue
           WHERE s_suppkey = supplier_no AND total_revenue = (SELECT max(total_revenue) FROM revenue) ORDER BY s_suppkey""",
    16: """SELECT p_brand, p_type, p_size, count(DISTINCT ps_suppkey) AS supplier_cnt FROM partsupp, part
           WHERE p_partkey = ps_partkey AND p_brand <> 'Brand#45' AND p_type NOT LIKE 'MEDIUM POLISHED%' AND p_size IN (49, 14, 23, 45, 19, 3, 36, 9, 15)
             AND ps_suppkey NOT IN (SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Customer%Complaints%')
           GROUP BY p_brand, p_type, p_size ORDER BY supplier_cnt DESC, p_brand, p_type, p_size""",
    17: """SELECT sum(l_extendedprice) / 7.0 AS avg_yearly FROM lineitem, part
           WHERE p_partkey = l_partkey AND p_brand LIKE 'Brand#2%' AND p_container LIKE 'MED%'
             AND l_quantity < (SELECT 0.2 * avg(l_quantity) FROM lineitem WHERE l_partkey = p_partkey)""",
    18: """SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) FROM customer, orders, lineitem
           WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 250) AND c_custkey = o_custkey AND o_orderkey = l_orderkey
           GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice ORDER BY o_totalprice DESC, o_orderdate, o_orderkey LIMIT 100""",
    19: """SELECT sum(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem, part
           WHERE (p_partkey = l_partkey AND p_brand LIKE 'Brand#1%' AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG') AND l_quantity >= 1 AND l_quantity <= 1 + 10
                  AND p_size BETWEEN 1 AND 15 AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON')
              OR (p_partkey = l_partkey AND p_brand LIKE 'Brand#2%' AND p_container IN ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK') AND l_quantity >= 10 AND l_quantity <= 10 + 10
                  AND p_size BETWEEN 1 AND 15 AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON')
              OR (p_partkey = l_partkey AND p_brand LIKE 'Brand#3%' AND p_container IN ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG') AND l_quantity >= 20 AND l_quantity <= 20 + 10
                  AND p_size BETWEEN 1 AND 15 AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON')""",
    20: """SELECT s_name, s_address FROM supplier, nation
           WHERE s_suppkey IN (SELECT ps_suppkey FROM partsupp
                               WHERE ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE 'forest%')
                                 AND ps_availqty > (SELECT 0.5 * sum(l_quantity) FROM lineitem
                                                    WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey AND l_shipdate >= date '1994-01-01'
                                                      AND l_shipdate < date '1994-01-01' + interval '1' year))
             AND s_nationkey = n_nationkey AND n_name IN ('CANADA', 'FRANCE', 'GERMANY') ORDER BY s_name""",
    21: """SELECT s_name, count(*) AS numwait FROM supplier, lineitem l1, orders, nation
           WHERE s_suppkey = l1.l_suppkey AND o_orderkey = l1.l_orderkey AND o_orderstatus = 'F' AND l1.l_receiptdate > l1.l_commitdate
             AND EXISTS (SELECT * FROM lineitem l2 WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey)
             AND NOT EXISTS (SELECT * FROM lineitem l3 WHERE l3.l_orderkey = l1.l_orderkey AND l3.l_suppkey <> l1.l_suppkey AND l3.l_receiptdate > l3.l_commitdate)
             AND s_nationkey = n_nationkey AND n_name IN ('SAUDI ARABIA', 'FRANCE') GROUP BY s_name ORDER BY numwait DESC, s_name LIMIT 100""",
    22: """SELECT cntrycode, count(*) AS numcust, sum(c_acctbal) AS totacctbal
           FROM (SELECT substring(c_phone FROM 1 FOR 2) AS cntrycode, c_acctbal FROM customer
                 WHERE substring(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17', '16')
                   AND c_acctbal > (SELECT avg(c_acctbal) FROM customer WHERE c_acctbal > 0.00 AND substring(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17', '16'))
                   AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey)) AS custsale
           GROUP BY cntrycode ORDER BY cntrycode""",
}
