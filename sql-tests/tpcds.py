"""TPC-DS in small: the schema's tables with the columns that the queries read, data made here (seeded), and queries after the specification.

The queries keep the specification's shape (joins, windows, grouping sets, set operations, correlated subqueries); their parameters are wider, so that
small data gives rows. Orders are total where a LIMIT decides.

Not here: loading and comparing (tests/test_tpcds.py).
"""

import datetime
import random

I, N, T, D = "int", "numeric(7,2)", "text", "date"


def columns(spec: str) -> list[tuple[str, str]]:
    """`name`, `name:t` (text), `name:n` (money), `name:d` (date)."""
    kinds = {"t": T, "n": N, "d": D, "": I}
    return [(c.partition(":")[0], kinds[c.partition(":")[2]]) for c in spec.split()]


SALES = "{0}_quantity {0}_wholesale_cost:n {0}_list_price:n {0}_sales_price:n {0}_ext_discount_amt:n {0}_ext_sales_price:n {0}_ext_wholesale_cost:n " \
        "{0}_ext_list_price:n {0}_ext_tax:n {0}_coupon_amt:n {0}_net_paid:n {0}_net_profit:n"
TABLES = {name: columns(spec) for name, spec in {
    "date_dim": "d_date_sk d_date:d d_month_seq d_week_seq d_year d_dow d_moy d_dom d_qoy d_day_name:t d_quarter_name:t",
    "time_dim": "t_time_sk t_time t_hour t_minute t_meal_time:t",
    "item": "i_item_sk i_item_id:t i_item_desc:t i_current_price:n i_wholesale_cost:n i_brand_id i_brand:t i_class_id i_class:t i_category_id i_category:t "
            "i_manufact_id i_manufact:t i_size:t i_color:t i_units:t i_manager_id i_product_name:t",
    "customer": "c_customer_sk c_customer_id:t c_current_cdemo_sk c_current_hdemo_sk c_current_addr_sk c_first_name:t c_last_name:t c_salutation:t "
                "c_preferred_cust_flag:t c_birth_month c_birth_year c_birth_country:t c_login:t c_email_address:t",
    "customer_address": "ca_address_sk ca_city:t ca_county:t ca_state:t ca_zip:t ca_country:t ca_gmt_offset:n ca_location_type:t",
    "customer_demographics": "cd_demo_sk cd_gender:t cd_marital_status:t cd_education_status:t cd_purchase_estimate cd_credit_rating:t cd_dep_count "
                             "cd_dep_employed_count cd_dep_college_count",
    "household_demographics": "hd_demo_sk hd_income_band_sk hd_buy_potential:t hd_dep_count hd_vehicle_count",
    "income_band": "ib_income_band_sk ib_lower_bound ib_upper_bound",
    "store": "s_store_sk s_store_id:t s_store_name:t s_number_employees s_city:t s_county:t s_state:t s_zip:t s_gmt_offset:n s_company_id s_company_name:t s_market_id",
    "warehouse": "w_warehouse_sk w_warehouse_name:t w_warehouse_sq_ft w_city:t w_state:t",
    "web_site": "web_site_sk web_site_id:t web_name:t web_company_name:t",
    "web_page": "wp_web_page_sk wp_char_count",
    "call_center": "cc_call_center_sk cc_call_center_id:t cc_name:t cc_manager:t cc_county:t",
    "catalog_page": "cp_catalog_page_sk cp_catalog_page_id:t",
    "promotion": "p_promo_sk p_channel_dmail:t p_channel_email:t p_channel_tv:t p_channel_event:t",
    "reason": "r_reason_sk r_reason_desc:t",
    "ship_mode": "sm_ship_mode_sk sm_type:t sm_carrier:t",
    "store_sales": "ss_sold_date_sk ss_sold_time_sk ss_item_sk ss_customer_sk ss_cdemo_sk ss_hdemo_sk ss_addr_sk ss_store_sk ss_promo_sk ss_ticket_number " + SALES.format("ss"),
    "store_returns": "sr_returned_date_sk sr_item_sk sr_customer_sk sr_cdemo_sk sr_store_sk sr_reason_sk sr_ticket_number sr_return_quantity sr_return_amt:n sr_net_loss:n",
    "catalog_sales": "cs_sold_date_sk cs_sold_time_sk cs_ship_date_sk cs_bill_customer_sk cs_bill_cdemo_sk cs_bill_hdemo_sk cs_bill_addr_sk cs_ship_customer_sk cs_ship_addr_sk "
                     "cs_call_center_sk cs_catalog_page_sk cs_ship_mode_sk cs_warehouse_sk cs_item_sk cs_promo_sk cs_order_number cs_ext_ship_cost:n " + SALES.format("cs"),
    "catalog_returns": "cr_returned_date_sk cr_item_sk cr_returning_customer_sk cr_returning_addr_sk cr_call_center_sk cr_catalog_page_sk cr_order_number "
                       "cr_return_quantity cr_return_amount:n cr_return_amt_inc_tax:n cr_refunded_cash:n cr_net_loss:n",
    "web_sales": "ws_sold_date_sk ws_sold_time_sk ws_ship_date_sk ws_item_sk ws_bill_customer_sk ws_bill_addr_sk ws_ship_customer_sk ws_ship_hdemo_sk ws_ship_addr_sk "
                 "ws_web_page_sk ws_web_site_sk ws_ship_mode_sk ws_warehouse_sk ws_promo_sk ws_order_number ws_ext_ship_cost:n " + SALES.format("ws"),
    "web_returns": "wr_returned_date_sk wr_item_sk wr_returning_customer_sk wr_returning_addr_sk wr_refunded_cdemo_sk wr_returning_cdemo_sk wr_refunded_addr_sk "
                   "wr_web_page_sk wr_reason_sk wr_order_number wr_return_quantity wr_return_amt:n wr_refunded_cash:n wr_fee:n wr_net_loss:n",
    "inventory": "inv_date_sk inv_item_sk inv_warehouse_sk inv_quantity_on_hand",
}.items()}

SIZES = {"item": 50, "customer": 70, "customer_address": 40, "customer_demographics": 30, "household_demographics": 20, "income_band": 5, "store": 4, "warehouse": 3,
         "web_site": 2, "web_page": 3, "call_center": 2, "catalog_page": 5, "promotion": 5, "reason": 4, "ship_mode": 4, "store_sales": 1400, "store_returns": 350,
         "catalog_sales": 800, "catalog_returns": 180, "web_sales": 700, "web_returns": 120, "inventory": 700}
FACTS = ("store_sales", "store_returns", "catalog_sales", "catalog_returns", "web_sales", "web_returns", "inventory")
START, DAYS = datetime.date(1999, 1, 1), 1096
KEYS = {"date": DAYS, "time": 96, "cdemo": 30, "hdemo": 20, "addr": 40, "demo": 30, "address": 40, "promo": 5, "income_band": 5}
WORDS = {
    "i_category": ["Books", "Music", "Electronics", "Home", "Sports", "Women"], "i_class": ["accessories", "classical", "fiction", "infants", "shirts"],
    "i_size": ["small", "medium", "large", "extra large"], "i_color": ["red", "powder", "khaki", "brown", "navajo"], "i_units": ["Oz", "Bunch", "Ton", "Dozen"],
    "ca_state": ["TN", "GA", "TX", "CA", "OH"], "s_state": ["TN", "GA"], "w_state": ["TN", "GA"], "ca_country": ["United States"], "ca_city": ["Midway", "Fairview", "Oakland"],
    "s_city": ["Midway", "Fairview"], "ca_county": ["Rush County", "Toole County", "Dona Ana County"], "s_county": ["Rush County", "Ziebach County"], "cc_county": ["Rush County"],
    "ca_zip": ["35709", "24128", "85392", "66662"], "s_zip": ["35700", "24111"], "ca_location_type": ["condo", "apartment", "single family"],
    "cd_gender": ["M", "F"], "cd_marital_status": ["M", "S", "W", "D"], "cd_education_status": ["College", "4 yr Degree", "Unknown"], "cd_credit_rating": ["Good", "Low Risk"],
    "hd_buy_potential": [">10000", "1001-5000", "Unknown", "501-1000"], "s_store_name": ["ese", "able", "ought"], "s_company_name": ["Unknown"],
    "sm_type": ["EXPRESS", "LIBRARY"], "sm_carrier": ["DHL", "BARIAN"], "web_company_name": ["pri", "able"], "t_meal_time": ["breakfast", "dinner", ""],
    "c_birth_country": ["CHILE", "TOGO"], "c_salutation": ["Dr.", "Ms."], "c_preferred_cust_flag": ["Y", "N"], "c_last_name": ["Smith", "Jones", "Lee"], "c_first_name": ["Ann", "Bob"],
}


class Data:
    def __init__(self, seed: int = 1, scale: float = 1):
        self.rng = random.Random(seed)
        self.rows = {t: [] for t in TABLES}
        for i in range(DAYS):
            d = START + datetime.timedelta(days=i)
            month = (d.year - 1999) * 12 + d.month - 1
            self.rows["date_dim"].append((i + 1, d, 1188 + month, 5200 + (i + 4) // 7, d.year, (d.weekday() + 1) % 7, d.month, d.day, (d.month + 2) // 3,
                                          d.strftime("%A"), f"{d.year}Q{(d.month + 2) // 3}"))
        self.rows["time_dim"] = [(i + 1, i * 900, i // 4, i % 4 * 15, self.rng.choice(WORDS["t_meal_time"])) for i in range(96)]
        for t, n in SIZES.items():
            for k in range(1, int(n * (scale if t in FACTS else 1)) + 1):
                self.rows[t].append(tuple(self.value(t, c, ty, k) for c, ty in TABLES[t]))
        # Returns are of something sold, and some customers come back.
        for sales, returns, pairs in (("store_sales", "store_returns", ("ticket_number", "item_sk", "customer_sk")), ("catalog_sales", "catalog_returns", ("order_number", "item_sk")),
                                      ("web_sales", "web_returns", ("order_number", "item_sk"))):
            at = lambda table, name: next(i for i, (c, _) in enumerate(TABLES[table]) if c.split("_", 1)[1].endswith(name) and "ship" not in c)  # noqa: E731
            out = []
            for row in self.rows[returns]:
                sold, row = self.rng.choice(self.rows[sales]), list(row)
                for p in pairs:
                    row[at(returns, p)] = sold[at(sales, p)]
                if sold[0] is not None:
                    row[0] = min(DAYS, sold[0] + self.rng.randint(1, 100))
                out.append(tuple(row))
            self.rows[returns] = out

    def value(self, table, name, ty, k):
        rng, stem = self.rng, name.split("_", 1)[1]
        if name == TABLES[table][0][0] and table not in FACTS:
            return k
        if table in FACTS and rng.random() < 0.03 and "item" not in name and "number" not in name:
            return None
        if name in WORDS:
            return rng.choice(WORDS[name])
        if ty == N:
            return "-5.00" if "gmt_offset" in name else f"{rng.randint(-2000 if 'profit' in name else 50, 20000) / 100:.2f}"
        if ty == T:
            if "channel" in name:
                return rng.choice("NY")
            return f"{stem}{k}" if stem.endswith("_id") or "name" in name or "desc" in name else f"{stem} {rng.randint(1, 4)}"
        if stem in ("ticket_number", "order_number"):
            return k // 4 + 1
        if name.endswith("_sk"):
            for key, n in {**KEYS, **SIZES, "customer": 70, "page": 3, "site": 2, "center": 2}.items():
                if stem.removesuffix("_sk").endswith(key):
                    return rng.randint(1, n)
        return {"quantity": lambda: rng.randint(1, 100), "quantity_on_hand": lambda: rng.randint(0, 900), "birth_month": lambda: rng.randint(1, 12),
                "birth_year": lambda: rng.randint(1930, 1990), "upper_bound": lambda: k * 20000, "lower_bound": lambda: (k - 1) * 20000,
                "number_employees": lambda: rng.randint(200, 300), "char_count": lambda: rng.randint(4000, 6000)}.get(stem, lambda: rng.randint(1, 6))()


def insert(table: str, rows: list[tuple]) -> str:
    def literal(v):
        return "NULL" if v is None else str(v) if isinstance(v, int) else "'" + str(v).replace("'", "''") + "'"

    return f"INSERT INTO {table} VALUES " + ", ".join("(" + ", ".join(map(literal, r)) + ")" for r in rows)


YEAR_TOTAL = """SELECT c_customer_id AS customer_id, c_first_name AS first_name, d_year AS dyear, sum({0}_ext_list_price - {0}_ext_discount_amt) AS year_total, '{1}' AS sale_type
                FROM customer, {2}, date_dim WHERE c_customer_sk = {0}_{3} AND {0}_sold_date_sk = d_date_sk GROUP BY c_customer_id, c_first_name, d_year"""
YEARS = YEAR_TOTAL.format("ss", "s", "store_sales", "customer_sk") + " UNION ALL " + YEAR_TOTAL.format("ws", "w", "web_sales", "bill_customer_sk")

CROSS_TOTAL = """SELECT c_customer_id AS customer_id, c_first_name AS first_name, c_last_name AS last_name, d_year AS dyear, '{1}' AS sale_type,
                        sum((({0}_ext_list_price - {0}_ext_wholesale_cost - {0}_ext_discount_amt) + {0}_ext_sales_price) / 2) AS year_total
                 FROM customer, {2}, date_dim WHERE c_customer_sk = {0}_{3} AND {0}_sold_date_sk = d_date_sk GROUP BY c_customer_id, c_first_name, c_last_name, d_year"""
CHANNEL = """SELECT {5} AS id, sum(sales) AS sales, sum(profit) AS profit, sum(amt) AS returns, sum(loss) AS profit_loss
             FROM (SELECT {6} AS place, {0}_sold_date_sk AS at, {0}_ext_sales_price AS sales, {0}_net_profit AS profit, 0::numeric AS amt, 0::numeric AS loss FROM {2}
                   UNION ALL {7}) x, date_dim, {4} WHERE at = d_date_sk AND d_date BETWEEN '2000-02-01' AND '2000-08-01' AND place = {8} GROUP BY {5}"""
BY_ITEM = """SELECT i_item_id, sum({0}_ext_sales_price) AS total FROM {1}, date_dim, customer_address, item WHERE i_item_id IN (SELECT i_item_id FROM item WHERE {2})
             AND {0}_item_sk = i_item_sk AND {0}_sold_date_sk = d_date_sk AND d_year = 2000 AND d_moy <= 6 AND {0}_{3} = ca_address_sk AND ca_gmt_offset = -5 GROUP BY i_item_id"""
BOUGHT = """SELECT i_brand_id, i_class_id, i_category_id FROM {1}, item, date_dim WHERE {0}_item_sk = i_item_sk AND {0}_sold_date_sk = d_date_sk AND d_year BETWEEN 1999 AND 2001"""
RATIOS = """SELECT '{0}' AS channel, item, return_ratio, return_rank, currency_rank
            FROM (SELECT item, return_ratio, currency_ratio, rank() OVER (ORDER BY return_ratio) AS return_rank, rank() OVER (ORDER BY currency_ratio) AS currency_rank
                  FROM (SELECT {1}_item_sk AS item, sum(coalesce({2}_return_quantity, 0))::numeric / sum(coalesce({1}_quantity, 0)) AS return_ratio,
                               sum(coalesce({2}_{3}, 0)) / sum(coalesce({1}_net_paid, 0)) AS currency_ratio
                        FROM {4} LEFT JOIN {5} ON {1}_{6} = {2}_{6} AND {1}_item_sk = {2}_item_sk, date_dim
                        WHERE {2}_{3} > 10 AND {1}_net_profit > 1 AND {1}_net_paid > 0 AND {1}_quantity > 0 AND {1}_sold_date_sk = d_date_sk AND d_year = 2000 GROUP BY {1}_item_sk) r) w
            WHERE return_rank <= 10 OR currency_rank <= 10"""
SHIPPED = """SELECT w_warehouse_name, w_warehouse_sq_ft, w_city, w_state, 'DHL,BARIAN' AS carriers, d_year AS year,
                    sum(CASE WHEN d_moy = 1 THEN {0}_{1} * {0}_quantity ELSE 0 END) AS jan, sum(CASE WHEN d_moy = 6 THEN {0}_{1} * {0}_quantity ELSE 0 END) AS jun,
                    sum(CASE WHEN d_moy = 12 THEN {0}_net_paid * {0}_quantity ELSE 0 END) AS dec_net
             FROM {2}, warehouse, date_dim, time_dim, ship_mode WHERE {0}_warehouse_sk = w_warehouse_sk AND {0}_sold_date_sk = d_date_sk AND {0}_sold_time_sk = t_time_sk
               AND {0}_ship_mode_sk = sm_ship_mode_sk AND d_year = 2000 AND t_time BETWEEN 20000 AND 70000 AND sm_carrier IN ('DHL', 'BARIAN')
             GROUP BY w_warehouse_name, w_warehouse_sq_ft, w_city, w_state, d_year"""
RETURNED = """{5} AS (SELECT {6} AS id, sum({0}_ext_sales_price) AS sales, sum(coalesce({1}_{4}, 0)) AS returns, sum({0}_net_profit - coalesce({1}_net_loss, 0)) AS profit
              FROM {2} LEFT OUTER JOIN {3} ON {0}_item_sk = {1}_item_sk AND {0}_{7} = {1}_{7}, date_dim, {8}, item, promotion
              WHERE {0}_sold_date_sk = d_date_sk AND d_date BETWEEN '2000-01-01' AND '2000-09-30' AND {9} AND {0}_item_sk = i_item_sk AND i_current_price > 20
                AND {0}_promo_sk = p_promo_sk AND p_channel_tv = 'N' GROUP BY {6})"""

QUERIES = {
    1: """WITH ctr AS (SELECT sr_customer_sk AS cust, sr_store_sk AS store, sum(sr_return_amt) AS total FROM store_returns, date_dim
                       WHERE sr_returned_date_sk = d_date_sk AND d_year = 2000 GROUP BY sr_customer_sk, sr_store_sk)
          SELECT c_customer_id FROM ctr c1, store, customer WHERE c1.total > (SELECT avg(total) * 1.2 FROM ctr c2 WHERE c1.store = c2.store)
            AND s_store_sk = c1.store AND s_state = 'TN' AND c1.cust = c_customer_sk ORDER BY c_customer_id LIMIT 100""",
    2: """WITH wscs AS (SELECT ws_sold_date_sk AS d, ws_ext_sales_price AS p FROM web_sales UNION ALL SELECT cs_sold_date_sk, cs_ext_sales_price FROM catalog_sales),
          wswscs AS (SELECT d_week_seq, sum(CASE WHEN d_day_name = 'Sunday' THEN p END) AS sun, sum(CASE WHEN d_day_name = 'Monday' THEN p END) AS mon FROM wscs, date_dim
                     WHERE d_date_sk = d GROUP BY d_week_seq)
          SELECT y.d_week_seq, round(y.sun / z.sun, 2), round(y.mon / z.mon, 2)
          FROM (SELECT DISTINCT w.* FROM wswscs w, date_dim d WHERE d.d_week_seq = w.d_week_seq AND d_year = 1999) y,
               (SELECT DISTINCT w.* FROM wswscs w, date_dim d WHERE d.d_week_seq = w.d_week_seq AND d_year = 2000) z WHERE y.d_week_seq = z.d_week_seq - 53 ORDER BY 1""",
    3: """SELECT d_year, i_brand_id, i_brand, sum(ss_ext_sales_price) FROM date_dim, store_sales, item
          WHERE d_date_sk = ss_sold_date_sk AND ss_item_sk = i_item_sk AND i_manufact_id = 3 AND d_moy = 11 GROUP BY d_year, i_brand, i_brand_id ORDER BY 1, 4 DESC, 2 LIMIT 100""",
    4: f"""WITH year_total AS ({CROSS_TOTAL.format('ss', 's', 'store_sales', 'customer_sk')} UNION ALL {CROSS_TOTAL.format('cs', 'c', 'catalog_sales', 'bill_customer_sk')}
                               UNION ALL {CROSS_TOTAL.format('ws', 'w', 'web_sales', 'bill_customer_sk')})
           SELECT s2.customer_id, s2.first_name, s2.last_name FROM year_total s1, year_total s2, year_total c1, year_total c2, year_total w1, year_total w2
           WHERE s2.customer_id = s1.customer_id AND s1.customer_id = c2.customer_id AND s1.customer_id = c1.customer_id AND s1.customer_id = w1.customer_id
             AND s1.customer_id = w2.customer_id AND s1.sale_type = 's' AND c1.sale_type = 'c' AND w1.sale_type = 'w' AND s2.sale_type = 's' AND c2.sale_type = 'c'
             AND w2.sale_type = 'w' AND s1.dyear = 1999 AND s2.dyear = 2000 AND c1.dyear = 1999 AND c2.dyear = 2000 AND w1.dyear = 1999 AND w2.dyear = 2000
             AND s1.year_total > 0 AND c1.year_total > 0 AND w1.year_total > 0
             AND CASE WHEN c1.year_total > 0 THEN c2.year_total / c1.year_total END > CASE WHEN s1.year_total > 0 THEN s2.year_total / s1.year_total END
             AND CASE WHEN c1.year_total > 0 THEN c2.year_total / c1.year_total END > CASE WHEN w1.year_total > 0 THEN w2.year_total / w1.year_total END ORDER BY 1, 2, 3 LIMIT 100""",
    5: f"""WITH ssr AS ({CHANNEL.format('ss', 'sr', 'store_sales', 'store_returns', 'store', 's_store_id', 'ss_store_sk', 'SELECT sr_store_sk, sr_returned_date_sk, 0, 0, sr_return_amt, sr_net_loss FROM store_returns', 's_store_sk')}),
           csr AS ({CHANNEL.format('cs', 'cr', 'catalog_sales', 'catalog_returns', 'catalog_page', 'cp_catalog_page_id', 'cs_catalog_page_sk', 'SELECT cr_catalog_page_sk, cr_returned_date_sk, 0, 0, cr_return_amount, cr_net_loss FROM catalog_returns', 'cp_catalog_page_sk')}),
           wsr AS ({CHANNEL.format('ws', 'wr', 'web_sales', 'web_returns', 'web_site', 'web_site_id', 'ws_web_site_sk', 'SELECT ws_web_site_sk, wr_returned_date_sk, 0, 0, wr_return_amt, wr_net_loss FROM web_returns LEFT OUTER JOIN web_sales ON wr_item_sk = ws_item_sk AND wr_order_number = ws_order_number', 'web_site_sk')})
           SELECT channel, id, sum(sales), sum(returns), sum(profit)
           FROM (SELECT 'store channel' AS channel, 'store' || id AS id, sales, returns, profit - profit_loss AS profit FROM ssr
                 UNION ALL SELECT 'catalog channel', 'catalog_page' || id, sales, returns, profit - profit_loss FROM csr
                 UNION ALL SELECT 'web channel', 'web_site' || id, sales, returns, profit - profit_loss FROM wsr) x GROUP BY ROLLUP (channel, id) ORDER BY channel, id LIMIT 100""",
    6: """SELECT a.ca_state, count(*) FROM customer_address a, customer c, store_sales s, date_dim d, item i
          WHERE a.ca_address_sk = c.c_current_addr_sk AND c.c_customer_sk = s.ss_customer_sk AND s.ss_sold_date_sk = d.d_date_sk AND s.ss_item_sk = i.i_item_sk
            AND d.d_month_seq IN (SELECT DISTINCT d_month_seq FROM date_dim WHERE d_year = 2000 AND d_moy < 7)
            AND i.i_current_price > 1.2 * (SELECT avg(j.i_current_price) FROM item j WHERE j.i_category = i.i_category) GROUP BY a.ca_state HAVING count(*) >= 2 ORDER BY 2, 1""",
    7: """SELECT i_item_id, avg(ss_quantity), avg(ss_list_price), avg(ss_coupon_amt), avg(ss_sales_price) FROM store_sales, customer_demographics, date_dim, item, promotion
          WHERE ss_sold_date_sk = d_date_sk AND ss_item_sk = i_item_sk AND ss_cdemo_sk = cd_demo_sk AND ss_promo_sk = p_promo_sk AND cd_gender = 'M' AND d_year = 2000
            AND (p_channel_email = 'N' OR p_channel_event = 'N') GROUP BY i_item_id ORDER BY i_item_id LIMIT 100""",
    8: """SELECT s_store_name, sum(ss_net_profit) FROM store_sales, date_dim, store,
            (SELECT ca_zip FROM (SELECT substr(ca_zip, 1, 5) AS ca_zip FROM customer_address WHERE substr(ca_zip, 1, 5) IN ('35709', '24128', '85392')
                                 INTERSECT SELECT ca_zip FROM (SELECT substr(ca_zip, 1, 5) AS ca_zip, count(*) FROM customer_address, customer
                                   WHERE ca_address_sk = c_current_addr_sk AND c_preferred_cust_flag = 'Y' GROUP BY ca_zip HAVING count(*) > 2) a1) a2) v1
          WHERE ss_store_sk = s_store_sk AND ss_sold_date_sk = d_date_sk AND d_qoy = 2 AND substr(s_zip, 1, 2) = substr(v1.ca_zip, 1, 2) GROUP BY s_store_name ORDER BY 1""",
    9: """SELECT CASE WHEN (SELECT count(*) FROM store_sales WHERE ss_quantity BETWEEN 1 AND 20) > 200 THEN (SELECT avg(ss_ext_discount_amt) FROM store_sales WHERE ss_quantity BETWEEN 1 AND 20)
                 ELSE (SELECT avg(ss_net_paid) FROM store_sales WHERE ss_quantity BETWEEN 1 AND 20) END,
            CASE WHEN (SELECT count(*) FROM store_sales WHERE ss_quantity BETWEEN 21 AND 40) > 900 THEN (SELECT avg(ss_ext_discount_amt) FROM store_sales WHERE ss_quantity BETWEEN 21 AND 40)
                 ELSE (SELECT avg(ss_net_paid) FROM store_sales WHERE ss_quantity BETWEEN 21 AND 40) END FROM reason WHERE r_reason_sk = 1""",
    10: """SELECT cd_gender, cd_marital_status, cd_education_status, count(*), cd_purchase_estimate, cd_credit_rating FROM customer c, customer_address ca, customer_demographics
           WHERE c.c_current_addr_sk = ca.ca_address_sk AND ca_county IN ('Rush County', 'Toole County') AND cd_demo_sk = c.c_current_cdemo_sk
             AND EXISTS (SELECT * FROM store_sales, date_dim WHERE c.c_customer_sk = ss_customer_sk AND ss_sold_date_sk = d_date_sk AND d_year = 2000)
             AND (EXISTS (SELECT * FROM web_sales, date_dim WHERE c.c_customer_sk = ws_bill_customer_sk AND ws_sold_date_sk = d_date_sk AND d_year = 2000 AND d_moy < 5)
               OR EXISTS (SELECT * FROM catalog_sales, date_dim WHERE c.c_customer_sk = cs_ship_customer_sk AND cs_sold_date_sk = d_date_sk AND d_year = 2000 AND d_moy < 5))
           GROUP BY 1, 2, 3, 5, 6 ORDER BY 1, 2, 3, 5, 6 LIMIT 100""",
    11: f"""WITH year_total AS ({YEARS})
           SELECT s2.customer_id, s2.first_name FROM year_total s1, year_total s2, year_total w1, year_total w2
           WHERE s2.customer_id = s1.customer_id AND s1.customer_id = w2.customer_id AND s1.customer_id = w1.customer_id AND s1.sale_type = 's' AND w1.sale_type = 'w'
             AND s2.sale_type = 's' AND w2.sale_type = 'w' AND s1.dyear = 1999 AND s2.dyear = 2000 AND w1.dyear = 1999 AND w2.dyear = 2000 AND s1.year_total > 0 AND w1.year_total > 0
             AND CASE WHEN w1.year_total > 0 THEN w2.year_total / w1.year_total END > CASE WHEN s1.year_total > 0 THEN s2.year_total / s1.year_total END ORDER BY 1 LIMIT 100""",
    12: """SELECT i_item_id, i_category, i_class, sum(ws_ext_sales_price) AS rev, sum(ws_ext_sales_price) * 100 / sum(sum(ws_ext_sales_price)) OVER (PARTITION BY i_class) AS ratio
           FROM web_sales, item, date_dim WHERE ws_item_sk = i_item_sk AND i_category IN ('Sports', 'Books', 'Home') AND ws_sold_date_sk = d_date_sk
             AND d_date BETWEEN date '1999-02-22' AND date '1999-02-22' + interval '300 days' GROUP BY i_item_id, i_category, i_class ORDER BY 2, 3, 1, 5 LIMIT 100""",
    13: """SELECT avg(ss_quantity), avg(ss_ext_sales_price), avg(ss_ext_wholesale_cost), sum(ss_ext_wholesale_cost)
           FROM store_sales, store, customer_demographics, household_demographics, customer_address, date_dim WHERE s_store_sk = ss_store_sk AND ss_sold_date_sk = d_date_sk
             AND ((ss_hdemo_sk = hd_demo_sk AND cd_demo_sk = ss_cdemo_sk AND cd_marital_status = 'M' AND hd_dep_count > 1) OR
                  (ss_hdemo_sk = hd_demo_sk AND cd_demo_sk = ss_cdemo_sk AND cd_marital_status = 'S' AND ss_sales_price BETWEEN 50 AND 150))
             AND ((ss_addr_sk = ca_address_sk AND ca_state IN ('TX', 'OH') AND ss_net_profit > 10) OR (ss_addr_sk = ca_address_sk AND ca_state IN ('GA', 'CA') AND ss_net_profit > 50))""",
    14: f"""WITH cross_items AS (SELECT i_item_sk AS ss_item_sk FROM item, ({BOUGHT.format('ss', 'store_sales')} INTERSECT {BOUGHT.format('cs', 'catalog_sales')}
                                 INTERSECT {BOUGHT.format('ws', 'web_sales')}) x (brand_id, class_id, category_id) WHERE i_brand_id = brand_id AND i_class_id = class_id AND i_category_id = category_id),
            avg_sales AS (SELECT avg(quantity * list_price) AS average_sales FROM (SELECT ss_quantity AS quantity, ss_list_price AS list_price FROM store_sales, date_dim WHERE ss_sold_date_sk = d_date_sk
                            UNION ALL SELECT cs_quantity, cs_list_price FROM catalog_sales, date_dim WHERE cs_sold_date_sk = d_date_sk
                            UNION ALL SELECT ws_quantity, ws_list_price FROM web_sales, date_dim WHERE ws_sold_date_sk = d_date_sk) x)
            SELECT channel, i_brand_id, i_class_id, i_category_id, sum(sales), sum(number_sales) FROM (
              SELECT 'store' AS channel, i_brand_id, i_class_id, i_category_id, sum(ss_quantity * ss_list_price) AS sales, count(*) AS number_sales FROM store_sales, item, date_dim
              WHERE ss_item_sk IN (SELECT ss_item_sk FROM cross_items) AND ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk AND d_year = 2001
              GROUP BY i_brand_id, i_class_id, i_category_id HAVING sum(ss_quantity * ss_list_price) > (SELECT average_sales FROM avg_sales)
              UNION ALL SELECT 'catalog', i_brand_id, i_class_id, i_category_id, sum(cs_quantity * cs_list_price), count(*) FROM catalog_sales, item, date_dim
              WHERE cs_item_sk IN (SELECT ss_item_sk FROM cross_items) AND cs_item_sk = i_item_sk AND cs_sold_date_sk = d_date_sk AND d_year = 2001
              GROUP BY i_brand_id, i_class_id, i_category_id HAVING sum(cs_quantity * cs_list_price) > (SELECT average_sales FROM avg_sales)
              UNION ALL SELECT 'web', i_brand_id, i_class_id, i_category_id, sum(ws_quantity * ws_list_price), count(*) FROM web_sales, item, date_dim
              WHERE ws_item_sk IN (SELECT ss_item_sk FROM cross_items) AND ws_item_sk = i_item_sk AND ws_sold_date_sk = d_date_sk AND d_year = 2001
              GROUP BY i_brand_id, i_class_id, i_category_id HAVING sum(ws_quantity * ws_list_price) > (SELECT average_sales FROM avg_sales)) y
            GROUP BY ROLLUP (channel, i_brand_id, i_class_id, i_category_id) ORDER BY channel, i_brand_id, i_class_id, i_category_id LIMIT 100""",
    15: """SELECT ca_zip, sum(cs_sales_price) FROM catalog_sales, customer, customer_address, date_dim WHERE cs_bill_customer_sk = c_customer_sk AND c_current_addr_sk = ca_address_sk
             AND (substr(ca_zip, 1, 5) IN ('85669', '35709') OR ca_state IN ('CA', 'GA') OR cs_sales_price > 150) AND cs_sold_date_sk = d_date_sk AND d_qoy = 2 GROUP BY ca_zip ORDER BY 1""",
    16: """SELECT count(DISTINCT cs_order_number), sum(cs_ext_ship_cost), sum(cs_net_profit) FROM catalog_sales cs1, date_dim, customer_address, call_center
           WHERE d_date BETWEEN date '1999-02-01' AND date '2000-12-01' AND cs1.cs_ship_date_sk = d_date_sk AND cs1.cs_ship_addr_sk = ca_address_sk AND ca_state IN ('GA', 'TX')
             AND cs1.cs_call_center_sk = cc_call_center_sk AND EXISTS (SELECT * FROM catalog_sales cs2 WHERE cs1.cs_order_number = cs2.cs_order_number AND cs1.cs_warehouse_sk <> cs2.cs_warehouse_sk)
             AND NOT EXISTS (SELECT * FROM catalog_returns cr1 WHERE cs1.cs_order_number = cr1.cr_order_number)""",
    17: """SELECT i_item_id, s_state, count(ss_quantity), avg(ss_quantity), stddev_samp(ss_quantity), count(sr_return_quantity), avg(sr_return_quantity), count(cs_quantity)
           FROM store_sales, store_returns, catalog_sales, store, item WHERE i_item_sk = ss_item_sk AND s_store_sk = ss_store_sk AND ss_customer_sk = sr_customer_sk AND ss_item_sk = sr_item_sk
             AND ss_ticket_number = sr_ticket_number AND sr_customer_sk = cs_bill_customer_sk GROUP BY i_item_id, s_state ORDER BY 1, 2 LIMIT 100""",
    18: """SELECT i_item_id, ca_country, ca_state, ca_county, avg(cs_quantity::numeric(12,2)), avg(cs_list_price::numeric(12,2)), avg(c_birth_year::numeric(12,2))
           FROM catalog_sales, customer_demographics, customer, customer_address, date_dim, item WHERE cs_sold_date_sk = d_date_sk AND cs_item_sk = i_item_sk AND cs_bill_cdemo_sk = cd_demo_sk
             AND cs_bill_customer_sk = c_customer_sk AND cd_gender = 'F' AND c_current_addr_sk = ca_address_sk AND c_birth_month IN (1, 6, 8, 9) AND d_year = 2000
           GROUP BY ROLLUP (i_item_id, ca_country, ca_state, ca_county)""",
    19: """SELECT i_brand_id, i_brand, i_manufact_id, sum(ss_ext_sales_price) FROM date_dim, store_sales, item, customer, customer_address, store
           WHERE d_date_sk = ss_sold_date_sk AND ss_item_sk = i_item_sk AND i_manager_id < 4 AND d_moy = 11 AND ss_customer_sk = c_customer_sk AND c_current_addr_sk = ca_address_sk
             AND substr(ca_zip, 1, 5) <> substr(s_zip, 1, 5) AND ss_store_sk = s_store_sk GROUP BY 1, 2, 3 ORDER BY 4 DESC, 2, 1, 3 LIMIT 100""",
    20: """SELECT i_item_id, i_item_desc, i_category, i_class, i_current_price, sum(cs_ext_sales_price) AS itemrevenue,
                  round(sum(cs_ext_sales_price) * 100 / sum(sum(cs_ext_sales_price)) OVER (PARTITION BY i_class), 4) AS revenueratio FROM catalog_sales, item, date_dim
           WHERE cs_item_sk = i_item_sk AND i_category IN ('Books', 'Music', 'Home') AND cs_sold_date_sk = d_date_sk AND d_date BETWEEN '2000-01-01' AND '2000-06-30'
           GROUP BY i_item_id, i_item_desc, i_category, i_class, i_current_price ORDER BY i_category, i_class, i_item_id, i_item_desc, revenueratio LIMIT 100""",
    21: """SELECT * FROM (SELECT w_warehouse_name, i_item_id, sum(CASE WHEN d_date < date '2000-03-11' THEN inv_quantity_on_hand ELSE 0 END) AS before,
                            sum(CASE WHEN d_date >= date '2000-03-11' THEN inv_quantity_on_hand ELSE 0 END) AS after
                          FROM inventory, warehouse, item, date_dim WHERE i_item_sk = inv_item_sk AND inv_warehouse_sk = w_warehouse_sk AND inv_date_sk = d_date_sk GROUP BY 1, 2) x
           WHERE CASE WHEN before > 0 THEN after::numeric / before END BETWEEN 0.5 AND 2.0 ORDER BY 1, 2 LIMIT 100""",
    22: """SELECT i_product_name, i_brand, i_class, i_category, avg(inv_quantity_on_hand) AS qoh FROM inventory, date_dim, item
           WHERE inv_date_sk = d_date_sk AND inv_item_sk = i_item_sk AND d_month_seq BETWEEN 1200 AND 1211 GROUP BY ROLLUP (i_product_name, i_brand, i_class, i_category)""",
    23: """WITH frequent_ss_items AS (SELECT substr(i_item_desc, 1, 30) AS itemdesc, i_item_sk AS item_sk, d_year AS solddate, count(*) AS cnt FROM store_sales, date_dim, item
                                      WHERE ss_sold_date_sk = d_date_sk AND ss_item_sk = i_item_sk AND d_year IN (1999, 2000, 2001) GROUP BY 1, 2, 3 HAVING count(*) > 4),
           max_store_sales AS (SELECT max(csales) AS tpcds_cmax FROM (SELECT c_customer_sk, sum(ss_quantity * ss_sales_price) AS csales FROM store_sales, customer, date_dim
                                 WHERE ss_customer_sk = c_customer_sk AND ss_sold_date_sk = d_date_sk GROUP BY c_customer_sk) x),
           best_ss_customer AS (SELECT c_customer_sk, sum(ss_quantity * ss_sales_price) AS ssales FROM store_sales, customer WHERE ss_customer_sk = c_customer_sk GROUP BY c_customer_sk
                                HAVING sum(ss_quantity * ss_sales_price) > 0.3 * (SELECT * FROM max_store_sales))
           SELECT c_last_name, c_customer_id, sum(sales) FROM (
             SELECT c_last_name, c_customer_id, cs_quantity * cs_list_price AS sales FROM catalog_sales, customer, date_dim WHERE d_year = 2000 AND cs_sold_date_sk = d_date_sk
               AND cs_item_sk IN (SELECT item_sk FROM frequent_ss_items) AND cs_bill_customer_sk IN (SELECT c_customer_sk FROM best_ss_customer) AND cs_bill_customer_sk = c_customer_sk
             UNION ALL SELECT c_last_name, c_customer_id, ws_quantity * ws_list_price FROM web_sales, customer, date_dim WHERE d_year = 2000 AND ws_sold_date_sk = d_date_sk
               AND ws_item_sk IN (SELECT item_sk FROM frequent_ss_items) AND ws_bill_customer_sk IN (SELECT c_customer_sk FROM best_ss_customer) AND ws_bill_customer_sk = c_customer_sk) y
           GROUP BY c_last_name, c_customer_id ORDER BY 1, 2, 3 LIMIT 100""",
    24: """WITH ssales AS (SELECT c_last_name, c_first_name, c_customer_id, s_store_name, ca_state, s_state, i_color, i_current_price, i_manager_id, i_units, i_size, sum(ss_net_paid) AS netpaid
                           FROM store_sales, store_returns, store, item, customer, customer_address WHERE ss_ticket_number = sr_ticket_number AND ss_item_sk = sr_item_sk
                             AND ss_customer_sk = c_customer_sk AND ss_item_sk = i_item_sk AND ss_store_sk = s_store_sk AND c_current_addr_sk = ca_address_sk
                             AND c_birth_country <> upper(ca_country) AND s_market_id <= 5
                           GROUP BY c_last_name, c_first_name, c_customer_id, s_store_name, ca_state, s_state, i_color, i_current_price, i_manager_id, i_units, i_size)
           SELECT c_last_name, c_first_name, c_customer_id, s_store_name, sum(netpaid) AS paid FROM ssales WHERE i_color IN ('red', 'powder') GROUP BY c_last_name, c_first_name, c_customer_id, s_store_name
           HAVING sum(netpaid) > (SELECT 0.05 * avg(netpaid) FROM ssales) ORDER BY 1, 2, 3, 4""",
    25: """SELECT i_item_id, s_store_id, sum(ss_net_profit), sum(sr_net_loss), sum(cs_net_profit) FROM store_sales, store_returns, catalog_sales, date_dim d1, store, item
           WHERE d1.d_date_sk = ss_sold_date_sk AND d1.d_year < 2001 AND i_item_sk = ss_item_sk AND s_store_sk = ss_store_sk AND ss_customer_sk = sr_customer_sk AND ss_item_sk = sr_item_sk
             AND ss_ticket_number = sr_ticket_number AND sr_customer_sk = cs_bill_customer_sk AND sr_item_sk <= cs_item_sk GROUP BY 1, 2 ORDER BY 1, 2 LIMIT 100""",
    26: """SELECT i_item_id, avg(cs_quantity), avg(cs_list_price), avg(cs_coupon_amt), avg(cs_sales_price) FROM catalog_sales, customer_demographics, date_dim, item, promotion
           WHERE cs_sold_date_sk = d_date_sk AND cs_item_sk = i_item_sk AND cs_bill_cdemo_sk = cd_demo_sk AND cs_promo_sk = p_promo_sk AND cd_gender = 'M'
             AND (p_channel_email = 'N' OR p_channel_event = 'N') AND d_year = 2000 GROUP BY i_item_id ORDER BY i_item_id LIMIT 100""",
    27: """SELECT i_item_id, s_state, grouping(s_state) AS g_state, avg(ss_quantity), avg(ss_list_price), avg(ss_coupon_amt) FROM store_sales, customer_demographics, date_dim, store, item
           WHERE ss_sold_date_sk = d_date_sk AND ss_item_sk = i_item_sk AND ss_store_sk = s_store_sk AND ss_cdemo_sk = cd_demo_sk AND cd_gender = 'M' AND d_year = 2000
           GROUP BY ROLLUP (i_item_id, s_state)""",
    28: """SELECT * FROM (SELECT avg(ss_list_price), count(ss_list_price), count(DISTINCT ss_list_price) FROM store_sales WHERE ss_quantity BETWEEN 0 AND 5
                            AND (ss_list_price BETWEEN 8 AND 18 OR ss_coupon_amt BETWEEN 45 AND 145)) b1,
                          (SELECT avg(ss_list_price), count(ss_list_price), count(DISTINCT ss_list_price) FROM store_sales WHERE ss_quantity BETWEEN 6 AND 10) AS b2(a, b, c)""",
    29: """SELECT i_item_id, i_item_desc, s_store_id, s_store_name, sum(ss_quantity), sum(sr_return_quantity), sum(cs_quantity)
           FROM store_sales, store_returns, catalog_sales, date_dim d1, date_dim d2, date_dim d3, store, item
           WHERE d1.d_date_sk = ss_sold_date_sk AND i_item_sk = ss_item_sk AND s_store_sk = ss_store_sk AND ss_customer_sk = sr_customer_sk AND ss_item_sk = sr_item_sk
             AND ss_ticket_number = sr_ticket_number AND sr_returned_date_sk = d2.d_date_sk AND sr_customer_sk = cs_bill_customer_sk AND cs_sold_date_sk = d3.d_date_sk
             AND d1.d_year IN (1999, 2000) AND d2.d_year >= 1999 AND d3.d_year IN (1999, 2000, 2001) GROUP BY i_item_id, i_item_desc, s_store_id, s_store_name ORDER BY 1, 2, 3, 4 LIMIT 100""",
    30: """WITH ctr AS (SELECT wr_returning_customer_sk AS cust, ca_state AS state, sum(wr_return_amt) AS total FROM web_returns, date_dim, customer_address
                        WHERE wr_returned_date_sk = d_date_sk AND wr_returning_addr_sk = ca_address_sk GROUP BY 1, 2)
           SELECT c_customer_id, c_salutation, total FROM ctr c1, customer_address, customer WHERE c1.total > (SELECT avg(total) * 1.2 FROM ctr c2 WHERE c1.state = c2.state)
             AND ca_address_sk = c_current_addr_sk AND c1.cust = c_customer_sk ORDER BY 1, 2, 3 LIMIT 100""",
    31: """WITH ss AS (SELECT ca_county, d_qoy, d_year, sum(ss_ext_sales_price) AS s FROM store_sales, date_dim, customer_address WHERE ss_sold_date_sk = d_date_sk AND ss_addr_sk = ca_address_sk
                       GROUP BY 1, 2, 3),
           ws AS (SELECT ca_county, d_qoy, d_year, sum(ws_ext_sales_price) AS s FROM web_sales, date_dim, customer_address WHERE ws_sold_date_sk = d_date_sk AND ws_bill_addr_sk = ca_address_sk
                  GROUP BY 1, 2, 3)
           SELECT s1.ca_county, w2.s / w1.s, s2.s / s1.s FROM ss s1, ss s2, ws w1, ws w2 WHERE s1.d_qoy = 1 AND s1.d_year = 2000 AND s1.ca_county = s2.ca_county AND s2.d_qoy = 2 AND s2.d_year = 2000
             AND s1.ca_county = w1.ca_county AND w1.d_qoy = 1 AND w1.d_year = 2000 AND w1.ca_county = w2.ca_county AND w2.d_qoy = 2 AND w2.d_year = 2000 ORDER BY 1""",
    32: """SELECT sum(cs_ext_discount_amt) FROM catalog_sales, item, date_dim WHERE i_manufact_id < 4 AND i_item_sk = cs_item_sk AND d_date_sk = cs_sold_date_sk
             AND cs_ext_discount_amt > (SELECT 1.3 * avg(cs_ext_discount_amt) FROM catalog_sales, date_dim WHERE cs_item_sk = i_item_sk AND d_date_sk = cs_sold_date_sk AND d_year = 2000)""",
    33: " UNION ALL ".join(f"""SELECT * FROM (SELECT i_manufact_id, sum({p}_ext_sales_price) AS total FROM {t}, date_dim, customer_address, item
           WHERE i_manufact_id IN (SELECT i_manufact_id FROM item WHERE i_category = 'Books') AND {p}_item_sk = i_item_sk AND {p}_sold_date_sk = d_date_sk AND d_year = 2000
             AND {p}_{a} = ca_address_sk AND ca_gmt_offset = -5 GROUP BY i_manufact_id) {p}x""" for p, t, a in
                           (("ss", "store_sales", "addr_sk"), ("cs", "catalog_sales", "bill_addr_sk"), ("ws", "web_sales", "bill_addr_sk"))),
    34: """SELECT c_last_name, c_first_name, ss_ticket_number, cnt FROM (SELECT ss_ticket_number, ss_customer_sk, count(*) AS cnt FROM store_sales, date_dim, store, household_demographics
             WHERE ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk AND ss_hdemo_sk = hd_demo_sk AND (hd_buy_potential = '>10000' OR hd_buy_potential = 'Unknown') AND hd_vehicle_count > 0
               AND CASE WHEN hd_vehicle_count > 0 THEN hd_dep_count::numeric / hd_vehicle_count ELSE NULL END > 0.8 GROUP BY 1, 2) dn, customer
           WHERE ss_customer_sk = c_customer_sk AND cnt BETWEEN 1 AND 20 ORDER BY 1, 2, 3, 4 LIMIT 200""",
    35: """SELECT ca_state, cd_gender, cd_marital_status, cd_dep_count, count(*), min(cd_dep_count), max(cd_dep_count), avg(cd_dep_count) FROM customer c, customer_address ca, customer_demographics
           WHERE c.c_current_addr_sk = ca.ca_address_sk AND cd_demo_sk = c.c_current_cdemo_sk
             AND EXISTS (SELECT * FROM store_sales, date_dim WHERE c.c_customer_sk = ss_customer_sk AND ss_sold_date_sk = d_date_sk AND d_qoy < 4)
             AND (EXISTS (SELECT * FROM web_sales WHERE c.c_customer_sk = ws_bill_customer_sk AND ws_quantity > 90) OR EXISTS (SELECT * FROM catalog_sales WHERE c.c_customer_sk = cs_ship_customer_sk))
           GROUP BY 1, 2, 3, 4""",
    36: """SELECT sum(ss_net_profit) / sum(ss_ext_sales_price) AS margin, i_category, i_class, grouping(i_category) + grouping(i_class) AS lochierarchy,
             rank() OVER (PARTITION BY grouping(i_category) + grouping(i_class), CASE WHEN grouping(i_class) = 0 THEN i_category END ORDER BY sum(ss_net_profit) / sum(ss_ext_sales_price))
           FROM store_sales, date_dim, item, store WHERE d_date_sk = ss_sold_date_sk AND d_year = 2000 AND i_item_sk = ss_item_sk AND s_store_sk = ss_store_sk AND s_state = 'TN'
           GROUP BY ROLLUP (i_category, i_class)""",
    37: """SELECT i_item_id, i_item_desc, i_current_price FROM item, inventory, date_dim, catalog_sales WHERE i_current_price BETWEEN 20 AND 150 AND inv_item_sk = i_item_sk AND d_date_sk = inv_date_sk
             AND d_date BETWEEN date '2000-02-01' AND date '2000-02-01' + 160 AND inv_quantity_on_hand BETWEEN 100 AND 500 AND cs_item_sk = i_item_sk GROUP BY 1, 2, 3 ORDER BY 1 LIMIT 100""",
    38: """SELECT count(*) FROM (SELECT DISTINCT c_last_name, c_first_name, d_moy FROM store_sales, date_dim, customer WHERE ss_sold_date_sk = d_date_sk AND ss_customer_sk = c_customer_sk
             INTERSECT SELECT DISTINCT c_last_name, c_first_name, d_moy FROM catalog_sales, date_dim, customer WHERE cs_sold_date_sk = d_date_sk AND cs_bill_customer_sk = c_customer_sk
             INTERSECT SELECT DISTINCT c_last_name, c_first_name, d_moy FROM web_sales, date_dim, customer WHERE ws_sold_date_sk = d_date_sk AND ws_bill_customer_sk = c_customer_sk) hot""",
    39: """WITH inv AS (SELECT w_warehouse_sk, i_item_sk, d_qoy, stdev, mean, CASE mean WHEN 0 THEN NULL ELSE stdev / mean END AS cov
                        FROM (SELECT w_warehouse_sk, i_item_sk, d_qoy, stddev_samp(inv_quantity_on_hand) AS stdev, avg(inv_quantity_on_hand) AS mean FROM inventory, item, warehouse, date_dim
                              WHERE inv_item_sk = i_item_sk AND inv_warehouse_sk = w_warehouse_sk AND inv_date_sk = d_date_sk GROUP BY 1, 2, 3) foo
                        WHERE CASE mean WHEN 0 THEN 0 ELSE stdev / mean END > 0.2)
           SELECT a.w_warehouse_sk, a.i_item_sk, a.d_qoy, a.mean, a.cov, b.d_qoy, b.mean, b.cov FROM inv a, inv b WHERE a.i_item_sk = b.i_item_sk AND a.w_warehouse_sk = b.w_warehouse_sk
             AND a.d_qoy = b.d_qoy - 1""",
    40: """SELECT w_state, i_item_id, sum(CASE WHEN d_date < date '2000-03-11' THEN cs_sales_price - coalesce(cr_refunded_cash, 0) ELSE 0 END) AS before,
             sum(CASE WHEN d_date >= date '2000-03-11' THEN cs_sales_price - coalesce(cr_refunded_cash, 0) ELSE 0 END) AS after
           FROM catalog_sales LEFT OUTER JOIN catalog_returns ON cs_order_number = cr_order_number AND cs_item_sk = cr_item_sk, warehouse, item, date_dim
           WHERE i_item_sk = cs_item_sk AND cs_warehouse_sk = w_warehouse_sk AND cs_sold_date_sk = d_date_sk GROUP BY 1, 2 ORDER BY 1, 2 LIMIT 100""",
    41: """SELECT DISTINCT i_product_name FROM item i1 WHERE i_manufact_id BETWEEN 1 AND 4
             AND (SELECT count(*) FROM item WHERE (i_manufact = i1.i_manufact AND ((i_category = 'Women' AND i_color IN ('powder', 'khaki')) OR (i_category = 'Home' AND i_color = 'brown')))
                    OR (i_manufact = i1.i_manufact AND i_category = 'Music' AND i_units IN ('Oz', 'Ton'))) > 0 ORDER BY 1 LIMIT 100""",
    42: """SELECT d_year, i_category_id, i_category, sum(ss_ext_sales_price) FROM date_dim, store_sales, item WHERE d_date_sk = ss_sold_date_sk AND ss_item_sk = i_item_sk
             AND i_manager_id <= 3 AND d_moy >= 10 AND d_year = 2000 GROUP BY d_year, i_category_id, i_category ORDER BY 4 DESC, 1, 2, 3 LIMIT 100""",
    43: """SELECT s_store_name, s_store_id, sum(CASE WHEN d_day_name = 'Sunday' THEN ss_sales_price END) AS sun, sum(CASE WHEN d_day_name = 'Friday' THEN ss_sales_price END) AS fri
           FROM date_dim, store_sales, store WHERE d_date_sk = ss_sold_date_sk AND s_store_sk = ss_store_sk AND s_gmt_offset = -5 AND d_year = 2000 GROUP BY 1, 2 ORDER BY 1, 2""",
    44: """SELECT a.rnk, i1.i_product_name AS best, i2.i_product_name AS worst
           FROM (SELECT * FROM (SELECT item_sk, rank() OVER (ORDER BY rank_col ASC) AS rnk FROM (SELECT ss_item_sk AS item_sk, avg(ss_net_profit) AS rank_col FROM store_sales s1 WHERE ss_store_sk = 4
                   GROUP BY ss_item_sk HAVING avg(ss_net_profit) > 0.9 * (SELECT avg(ss_net_profit) FROM store_sales WHERE ss_store_sk = 4)) v1) v11 WHERE rnk < 11) a,
                (SELECT * FROM (SELECT item_sk, rank() OVER (ORDER BY rank_col DESC) AS rnk FROM (SELECT ss_item_sk AS item_sk, avg(ss_net_profit) AS rank_col FROM store_sales s1 WHERE ss_store_sk = 4
                   GROUP BY ss_item_sk) v2) v21 WHERE rnk < 11) d, item i1, item i2 WHERE a.rnk = d.rnk AND i1.i_item_sk = a.item_sk AND i2.i_item_sk = d.item_sk ORDER BY 1, 2, 3""",
    45: """SELECT ca_zip, ca_city, sum(ws_sales_price) FROM web_sales, customer, customer_address, date_dim, item WHERE ws_bill_customer_sk = c_customer_sk
             AND c_current_addr_sk = ca_address_sk AND ws_item_sk = i_item_sk AND (substr(ca_zip, 1, 5) IN ('85392', '24128') OR i_item_id IN (SELECT i_item_id FROM item
               WHERE i_item_sk IN (2, 3, 5, 7, 11, 13, 17, 19, 23, 29))) AND ws_sold_date_sk = d_date_sk AND d_qoy = 2 AND d_year = 2001 GROUP BY ca_zip, ca_city ORDER BY 1, 2 LIMIT 100""",
    46: """SELECT c_last_name, c_first_name, ca_city, bought_city, ss_ticket_number, amt, profit
           FROM (SELECT ss_ticket_number, ss_customer_sk, ca_city AS bought_city, sum(ss_coupon_amt) AS amt, sum(ss_net_profit) AS profit FROM store_sales, date_dim, store, household_demographics, customer_address
                 WHERE ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk AND ss_hdemo_sk = hd_demo_sk AND ss_addr_sk = ca_address_sk AND (hd_dep_count = 4 OR hd_vehicle_count = 3)
                   AND d_dow IN (6, 0) GROUP BY ss_ticket_number, ss_customer_sk, ss_addr_sk, ca_city) dn, customer, customer_address current_addr
           WHERE ss_customer_sk = c_customer_sk AND c_current_addr_sk = current_addr.ca_address_sk AND current_addr.ca_city <> bought_city""",
    47: """WITH v1 AS (SELECT i_category, i_brand, s_store_name, d_year, d_moy, sum(ss_sales_price) AS sum_sales, avg(sum(ss_sales_price)) OVER (PARTITION BY i_category, i_brand, s_store_name, d_year) AS avg_monthly,
                         rank() OVER (PARTITION BY i_category, i_brand, s_store_name ORDER BY d_year, d_moy) AS rn FROM item, store_sales, date_dim, store
                       WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk GROUP BY 1, 2, 3, 4, 5)
           SELECT v1.i_category, v1.i_brand, v1.d_year, v1.d_moy, v1.avg_monthly, v1.sum_sales, lagged.sum_sales AS psum, lead.sum_sales AS nsum FROM v1, v1 lagged, v1 lead
           WHERE v1.i_category = lagged.i_category AND v1.i_category = lead.i_category AND v1.i_brand = lagged.i_brand AND v1.i_brand = lead.i_brand AND v1.s_store_name = lagged.s_store_name
             AND v1.s_store_name = lead.s_store_name AND v1.rn = lagged.rn + 1 AND v1.rn = lead.rn - 1 AND v1.d_year = 2000 AND abs(v1.sum_sales - v1.avg_monthly) > 0.1 * v1.avg_monthly""",
    48: """SELECT sum(ss_quantity) FROM store_sales, store, customer_demographics, customer_address, date_dim WHERE s_store_sk = ss_store_sk AND ss_sold_date_sk = d_date_sk AND d_year = 2000
             AND ((cd_demo_sk = ss_cdemo_sk AND cd_marital_status = 'M' AND ss_sales_price > 50) OR (cd_demo_sk = ss_cdemo_sk AND cd_marital_status = 'D' AND ss_sales_price < 150))
             AND ((ss_addr_sk = ca_address_sk AND ca_country = 'United States' AND ca_state IN ('CO', 'OH', 'TX')) OR (ss_addr_sk = ca_address_sk AND ca_state IN ('GA', 'TN') AND ss_net_profit > 20))""",
    49: f"""{RATIOS.format('web', 'ws', 'wr', 'return_amt', 'web_sales', 'web_returns', 'order_number')}
            UNION {RATIOS.format('catalog', 'cs', 'cr', 'return_amount', 'catalog_sales', 'catalog_returns', 'order_number')}
            UNION {RATIOS.format('store', 'ss', 'sr', 'return_amt', 'store_sales', 'store_returns', 'ticket_number')} ORDER BY 1, 4, 5, 2""",
    50: """SELECT s_store_name, sum(CASE WHEN sr_returned_date_sk - ss_sold_date_sk <= 30 THEN 1 ELSE 0 END) AS d30, sum(CASE WHEN sr_returned_date_sk - ss_sold_date_sk > 30 THEN 1 ELSE 0 END) AS more
           FROM store_sales, store_returns, store, date_dim d2 WHERE d2.d_year < 2002 AND ss_ticket_number = sr_ticket_number AND ss_item_sk = sr_item_sk AND sr_returned_date_sk = d2.d_date_sk
             AND ss_customer_sk = sr_customer_sk AND ss_store_sk = s_store_sk GROUP BY s_store_name""",
    51: """WITH web_v1 AS (SELECT ws_item_sk AS item_sk, d_date, sum(sum(ws_sales_price)) OVER (PARTITION BY ws_item_sk ORDER BY d_date ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS cume_sales
                           FROM web_sales, date_dim WHERE ws_sold_date_sk = d_date_sk AND d_month_seq BETWEEN 1200 AND 1205 GROUP BY ws_item_sk, d_date),
           store_v1 AS (SELECT ss_item_sk AS item_sk, d_date, sum(sum(ss_sales_price)) OVER (PARTITION BY ss_item_sk ORDER BY d_date ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS cume_sales
                        FROM store_sales, date_dim WHERE ss_sold_date_sk = d_date_sk AND d_month_seq BETWEEN 1200 AND 1205 GROUP BY ss_item_sk, d_date)
           SELECT * FROM (SELECT item_sk, d_date, web_sales, store_sales, max(web_sales) OVER (PARTITION BY item_sk ORDER BY d_date ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS web_cumulative,
                            max(store_sales) OVER (PARTITION BY item_sk ORDER BY d_date ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS store_cumulative
                          FROM (SELECT coalesce(web.item_sk, store.item_sk) AS item_sk, coalesce(web.d_date, store.d_date) AS d_date, web.cume_sales AS web_sales, store.cume_sales AS store_sales
                                FROM web_v1 web FULL OUTER JOIN store_v1 store ON web.item_sk = store.item_sk AND web.d_date = store.d_date) x) y WHERE web_cumulative > store_cumulative""",
    52: """SELECT d_year, i_brand_id, i_brand, sum(ss_ext_sales_price) FROM date_dim, store_sales, item WHERE d_date_sk = ss_sold_date_sk AND ss_item_sk = i_item_sk AND i_manager_id <= 2
             AND d_moy = 11 GROUP BY d_year, i_brand, i_brand_id ORDER BY d_year, 4 DESC, i_brand_id, i_brand LIMIT 100""",
    53: """SELECT * FROM (SELECT i_manufact_id, sum(ss_sales_price) AS sum_sales, avg(sum(ss_sales_price)) OVER (PARTITION BY i_manufact_id) AS avg_quarterly FROM item, store_sales, date_dim, store
             WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk AND d_month_seq BETWEEN 1200 AND 1211 AND ((i_category IN ('Books', 'Music') AND i_class IN ('fiction', 'shirts'))
               OR (i_category IN ('Women', 'Home') AND i_class IN ('accessories', 'classical'))) GROUP BY i_manufact_id, d_qoy) tmp1
           WHERE CASE WHEN avg_quarterly > 0 THEN abs(sum_sales - avg_quarterly) / avg_quarterly END > 0.1""",
    54: """WITH my_customers AS (SELECT DISTINCT c_customer_sk, c_current_addr_sk FROM (SELECT cs_sold_date_sk AS sold, cs_bill_customer_sk AS customer_sk, cs_item_sk AS item_sk FROM catalog_sales
                                   UNION ALL SELECT ws_sold_date_sk, ws_bill_customer_sk, ws_item_sk FROM web_sales) x, item, date_dim, customer
                                 WHERE sold = d_date_sk AND item_sk = i_item_sk AND i_category = 'Women' AND c_customer_sk = customer_sk AND d_moy <= 6 AND d_year = 2000),
           my_revenue AS (SELECT c_customer_sk, sum(ss_ext_sales_price) AS revenue FROM my_customers, store_sales, customer_address, store, date_dim
                          WHERE c_current_addr_sk = ca_address_sk AND ca_county = s_county AND ss_sold_date_sk = d_date_sk AND c_customer_sk = ss_customer_sk
                            AND d_month_seq BETWEEN (SELECT min(d_month_seq) + 1 FROM date_dim WHERE d_year = 2000 AND d_moy = 3)
                                                AND (SELECT min(d_month_seq) + 9 FROM date_dim WHERE d_year = 2000 AND d_moy = 3) GROUP BY c_customer_sk)
           SELECT segment, count(*), segment * 50 FROM (SELECT (revenue / 50)::int AS segment FROM my_revenue) s GROUP BY segment ORDER BY 1, 2 LIMIT 100""",
    55: """SELECT i_brand_id, i_brand, sum(ss_ext_sales_price) FROM date_dim, store_sales, item WHERE d_date_sk = ss_sold_date_sk AND ss_item_sk = i_item_sk AND i_manager_id IN (2, 4)
             AND d_moy = 12 AND d_year IN (1999, 2001) GROUP BY i_brand, i_brand_id ORDER BY 3 DESC, 1, 2 LIMIT 100""",
    56: f"""WITH ss AS ({BY_ITEM.format('ss', 'store_sales', "i_color IN ('red', 'khaki', 'navajo')", 'addr_sk')}),
            cs AS ({BY_ITEM.format('cs', 'catalog_sales', "i_color IN ('red', 'khaki', 'navajo')", 'bill_addr_sk')}), ws AS ({BY_ITEM.format('ws', 'web_sales', "i_color IN ('red', 'khaki', 'navajo')", 'bill_addr_sk')})
            SELECT i_item_id, sum(total) FROM (SELECT * FROM ss UNION ALL SELECT * FROM cs UNION ALL SELECT * FROM ws) x GROUP BY i_item_id ORDER BY 2, 1 LIMIT 100""",
    57: """WITH v1 AS (SELECT i_category, i_brand, cc_name, d_year, d_moy, sum(cs_sales_price) AS sum_sales,
                              avg(sum(cs_sales_price)) OVER (PARTITION BY i_category, i_brand, cc_name, d_year) AS avg_monthly_sales,
                              rank() OVER (PARTITION BY i_category, i_brand, cc_name ORDER BY d_year, d_moy) AS rn FROM item, catalog_sales, date_dim, call_center
                       WHERE cs_item_sk = i_item_sk AND cs_sold_date_sk = d_date_sk AND cc_call_center_sk = cs_call_center_sk AND d_year IN (1999, 2000)
                       GROUP BY i_category, i_brand, cc_name, d_year, d_moy)
           SELECT v1.i_category, v1.i_brand, v1.cc_name, v1.d_year, v1.d_moy, round(v1.avg_monthly_sales, 4), v1.sum_sales, v1_lag.sum_sales AS psum, v1_lead.sum_sales AS nsum
           FROM v1, v1 v1_lag, v1 v1_lead WHERE v1.i_category = v1_lag.i_category AND v1.i_category = v1_lead.i_category AND v1.i_brand = v1_lag.i_brand AND v1.i_brand = v1_lead.i_brand
             AND v1.cc_name = v1_lag.cc_name AND v1.cc_name = v1_lead.cc_name AND v1.rn = v1_lag.rn + 1 AND v1.rn = v1_lead.rn - 1 AND v1.avg_monthly_sales > 0
             AND abs(v1.sum_sales - v1.avg_monthly_sales) / v1.avg_monthly_sales > 0.1 ORDER BY v1.sum_sales - v1.avg_monthly_sales, 1, 2, 3, 4, 5 LIMIT 100""",
    58: """WITH ss AS (SELECT i_item_id AS item_id, sum(ss_ext_sales_price) AS rev FROM store_sales, item, date_dim WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk
             AND d_date IN (SELECT d_date FROM date_dim WHERE d_month_seq = (SELECT d_month_seq FROM date_dim WHERE d_date = date '2000-03-03')) GROUP BY i_item_id),
           ws AS (SELECT i_item_id AS item_id, sum(ws_ext_sales_price) AS rev FROM web_sales, item, date_dim WHERE ws_item_sk = i_item_sk AND ws_sold_date_sk = d_date_sk
             AND d_date IN (SELECT d_date FROM date_dim WHERE d_month_seq = (SELECT d_month_seq FROM date_dim WHERE d_date = date '2000-03-03')) GROUP BY i_item_id)
           SELECT ss.item_id, ss.rev, ws.rev, (ss.rev + ws.rev) / 2 FROM ss, ws WHERE ss.item_id = ws.item_id ORDER BY 1""",
    59: """WITH wss AS (SELECT d_week_seq, ss_store_sk, sum(CASE WHEN d_day_name = 'Sunday' THEN ss_sales_price END) AS sun FROM store_sales, date_dim WHERE d_date_sk = ss_sold_date_sk GROUP BY 1, 2)
           SELECT y.s_store_name, y.s_store_id, y.w, y.sun / x.sun FROM (SELECT s_store_name, d_week_seq AS w, s_store_id, sun FROM wss, store WHERE ss_store_sk = s_store_sk) y,
             (SELECT s_store_id, d_week_seq AS w, sun FROM wss, store WHERE ss_store_sk = s_store_sk) x WHERE y.s_store_id = x.s_store_id AND y.w = x.w - 52""",
    60: f"""WITH ss AS ({BY_ITEM.format('ss', 'store_sales', "i_category = 'Music'", 'addr_sk')}), cs AS ({BY_ITEM.format('cs', 'catalog_sales', "i_category = 'Music'", 'bill_addr_sk')}),
            ws AS ({BY_ITEM.format('ws', 'web_sales', "i_category = 'Music'", 'bill_addr_sk')})
            SELECT i_item_id, sum(total) FROM (SELECT * FROM ss UNION ALL SELECT * FROM cs UNION ALL SELECT * FROM ws) x GROUP BY i_item_id ORDER BY 1, 2 LIMIT 100""",
    61: """SELECT promotions, total, promotions / total * 100 FROM (SELECT sum(ss_ext_sales_price) AS promotions FROM store_sales, promotion WHERE ss_promo_sk = p_promo_sk AND p_channel_dmail = 'Y') a,
             (SELECT sum(ss_ext_sales_price) AS total FROM store_sales) b""",
    62: """SELECT substr(w_warehouse_name, 1, 20) AS w, sm_type, web_name, sum(CASE WHEN ws_ship_date_sk - ws_sold_date_sk <= 30 THEN 1 ELSE 0 END) FROM web_sales, warehouse, ship_mode, web_site
           WHERE ws_warehouse_sk = w_warehouse_sk AND ws_ship_mode_sk = sm_ship_mode_sk AND ws_web_site_sk = web_site_sk GROUP BY 1, sm_type, web_name ORDER BY 1, 2, 3 LIMIT 100""",
    63: """SELECT i_manager_id, sum_sales, avg_monthly_sales FROM (
             SELECT i_manager_id, sum(ss_sales_price) AS sum_sales, avg(sum(ss_sales_price)) OVER (PARTITION BY i_manager_id) AS avg_monthly_sales FROM item, store_sales, date_dim, store
             WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk AND d_month_seq BETWEEN 1190 AND 1201
               AND (i_category IN ('Books', 'Home', 'Electronics') AND i_class IN ('fiction', 'shirts') OR i_category IN ('Women', 'Music') AND i_class IN ('accessories', 'classical'))
             GROUP BY i_manager_id, d_moy) t
           WHERE CASE WHEN avg_monthly_sales > 0 THEN abs(sum_sales - avg_monthly_sales) / avg_monthly_sales END > 0.1 ORDER BY 1, 3, 2 LIMIT 100""",
    64: """WITH cs_ui AS (SELECT cs_item_sk, sum(cs_ext_list_price) AS sale, sum(cr_refunded_cash) AS refund FROM catalog_sales, catalog_returns WHERE cs_item_sk = cr_item_sk
                          AND cs_order_number = cr_order_number GROUP BY cs_item_sk HAVING sum(cs_ext_list_price) > 0.5 * sum(cr_refunded_cash)),
           cross_sales AS (SELECT i_product_name, i_item_sk, s_store_name, s_zip, ad1.ca_city AS b_city, ad2.ca_city AS c_city, d1.d_year AS syear, count(*) AS cnt, sum(ss_wholesale_cost) AS s1,
                                  sum(ss_list_price) AS s2, sum(ss_coupon_amt) AS s3
                           FROM store_sales, store_returns, cs_ui, date_dim d1, store, customer, customer_demographics cd1, customer_demographics cd2, promotion, household_demographics hd1,
                                household_demographics hd2, customer_address ad1, customer_address ad2, income_band ib1, income_band ib2, item
                           WHERE ss_store_sk = s_store_sk AND ss_sold_date_sk = d1.d_date_sk AND ss_customer_sk = c_customer_sk AND ss_cdemo_sk = cd1.cd_demo_sk AND ss_hdemo_sk = hd1.hd_demo_sk
                             AND ss_addr_sk = ad1.ca_address_sk AND ss_item_sk = i_item_sk AND ss_item_sk = sr_item_sk AND ss_ticket_number = sr_ticket_number AND ss_item_sk = cs_ui.cs_item_sk
                             AND c_current_cdemo_sk = cd2.cd_demo_sk AND c_current_hdemo_sk = hd2.hd_demo_sk AND c_current_addr_sk = ad2.ca_address_sk AND ss_promo_sk = p_promo_sk
                             AND hd1.hd_income_band_sk = ib1.ib_income_band_sk AND hd2.hd_income_band_sk = ib2.ib_income_band_sk AND cd1.cd_marital_status <> cd2.cd_marital_status
                           GROUP BY i_product_name, i_item_sk, s_store_name, s_zip, ad1.ca_city, ad2.ca_city, d1.d_year)
           SELECT x.i_product_name, x.s_store_name, x.s_zip, x.b_city, x.c_city, x.syear, x.cnt, x.s1, x.s2, x.s3, y.s1 AS t1, y.s2 AS t2, y.s3 AS t3, y.syear AS later, y.cnt AS n
           FROM cross_sales x, cross_sales y WHERE x.i_item_sk = y.i_item_sk AND x.syear < y.syear AND y.cnt <= x.cnt ORDER BY 1, 2, y.cnt, 8, 11, 3, 4, 5, 6, 14""",
    65: """SELECT s_store_name, i_item_desc, sc.revenue FROM store, item, (SELECT ss_store_sk, avg(revenue) AS ave FROM (SELECT ss_store_sk, ss_item_sk, sum(ss_sales_price) AS revenue FROM store_sales GROUP BY 1, 2) sa
             GROUP BY ss_store_sk) sb, (SELECT ss_store_sk, ss_item_sk, sum(ss_sales_price) AS revenue FROM store_sales GROUP BY 1, 2) sc
           WHERE sb.ss_store_sk = sc.ss_store_sk AND sc.revenue <= 0.5 * sb.ave AND s_store_sk = sc.ss_store_sk AND i_item_sk = sc.ss_item_sk""",
    66: f"""SELECT w_warehouse_name, w_warehouse_sq_ft, w_city, w_state, carriers, year, sum(jan), sum(jun), sum(jun / w_warehouse_sq_ft), sum(dec_net)
            FROM ({SHIPPED.format('ws', 'ext_sales_price', 'web_sales')} UNION ALL {SHIPPED.format('cs', 'sales_price', 'catalog_sales')}) x
            GROUP BY w_warehouse_name, w_warehouse_sq_ft, w_city, w_state, carriers, year ORDER BY 1 LIMIT 100""",
    67: """SELECT * FROM (SELECT i_category, i_class, i_brand, d_year, d_qoy, s_store_id, sumsales, rank() OVER (PARTITION BY i_category ORDER BY sumsales DESC) AS rk
             FROM (SELECT i_category, i_class, i_brand, d_year, d_qoy, s_store_id, sum(coalesce(ss_sales_price * ss_quantity, 0)) AS sumsales FROM store_sales, date_dim, store, item
                   WHERE ss_sold_date_sk = d_date_sk AND ss_item_sk = i_item_sk AND ss_store_sk = s_store_sk GROUP BY ROLLUP (i_category, i_class, i_brand, d_year, d_qoy, s_store_id)) dw1) dw2 WHERE rk <= 20""",
    68: """SELECT c_last_name, c_first_name, ca_city, bought_city, ss_ticket_number, extended_price, extended_tax, list_price FROM (
             SELECT ss_ticket_number, ss_customer_sk, ca_city AS bought_city, sum(ss_ext_sales_price) AS extended_price, sum(ss_ext_list_price) AS list_price, sum(ss_ext_tax) AS extended_tax
             FROM store_sales, date_dim, store, household_demographics, customer_address WHERE ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk AND ss_hdemo_sk = hd_demo_sk
               AND ss_addr_sk = ca_address_sk AND d_dom BETWEEN 1 AND 12 AND (hd_dep_count = 4 OR hd_vehicle_count = 3) AND d_year IN (1999, 2000, 2001) AND s_city IN ('Midway', 'Fairview')
             GROUP BY ss_ticket_number, ss_customer_sk, ss_addr_sk, ca_city) dn, customer, customer_address current_addr
           WHERE ss_customer_sk = c_customer_sk AND c_current_addr_sk = current_addr.ca_address_sk AND current_addr.ca_city <> bought_city ORDER BY 1, 5, 2, 3, 4, 6, 7, 8 LIMIT 100""",
    69: """SELECT cd_gender, cd_marital_status, cd_education_status, count(*) FROM customer c, customer_address ca, customer_demographics WHERE c.c_current_addr_sk = ca.ca_address_sk
             AND cd_demo_sk = c.c_current_cdemo_sk AND EXISTS (SELECT * FROM store_sales WHERE c.c_customer_sk = ss_customer_sk AND ss_quantity > 50)
             AND NOT EXISTS (SELECT * FROM web_sales WHERE c.c_customer_sk = ws_bill_customer_sk AND ws_quantity > 90)
             AND NOT EXISTS (SELECT * FROM catalog_sales WHERE c.c_customer_sk = cs_ship_customer_sk AND cs_quantity > 90) GROUP BY 1, 2, 3""",
    70: """SELECT sum(ss_net_profit) AS total, s_state, s_county, grouping(s_state) + grouping(s_county) AS lochierarchy,
             rank() OVER (PARTITION BY grouping(s_state) + grouping(s_county), CASE WHEN grouping(s_county) = 0 THEN s_state END ORDER BY sum(ss_net_profit) DESC)
           FROM store_sales, date_dim d1, store WHERE d1.d_date_sk = ss_sold_date_sk AND s_store_sk = ss_store_sk
             AND s_state IN (SELECT s_state FROM (SELECT s_state, rank() OVER (PARTITION BY s_state ORDER BY sum(ss_net_profit) DESC) AS ranking FROM store_sales, store WHERE s_store_sk = ss_store_sk
                             GROUP BY s_state) tmp1 WHERE ranking <= 5) GROUP BY ROLLUP (s_state, s_county)""",
    71: """SELECT i_brand_id, i_brand, t_hour, t_minute, sum(ext_price) FROM item, (SELECT ws_ext_sales_price AS ext_price, ws_item_sk AS item_sk, ws_sold_time_sk AS time_sk FROM web_sales
             UNION ALL SELECT cs_ext_sales_price, cs_item_sk, cs_sold_time_sk FROM catalog_sales UNION ALL SELECT ss_ext_sales_price, ss_item_sk, ss_sold_time_sk FROM store_sales) tmp, time_dim
           WHERE item_sk = i_item_sk AND i_manager_id = 1 AND time_sk = t_time_sk AND (t_meal_time = 'breakfast' OR t_meal_time = 'dinner') GROUP BY 1, 2, 3, 4""",
    72: """SELECT i_item_desc, w_warehouse_name, d1.d_week_seq, sum(CASE WHEN p_promo_sk IS NULL THEN 1 ELSE 0 END), sum(CASE WHEN p_promo_sk IS NOT NULL THEN 1 ELSE 0 END), count(*)
           FROM catalog_sales JOIN inventory ON cs_item_sk = inv_item_sk JOIN warehouse ON w_warehouse_sk = inv_warehouse_sk JOIN item ON i_item_sk = cs_item_sk
           JOIN household_demographics ON cs_bill_hdemo_sk = hd_demo_sk JOIN date_dim d1 ON cs_sold_date_sk = d1.d_date_sk JOIN date_dim d2 ON inv_date_sk = d2.d_date_sk
           JOIN date_dim d3 ON cs_ship_date_sk = d3.d_date_sk LEFT OUTER JOIN promotion ON cs_promo_sk = p_promo_sk AND p_channel_dmail = 'N'
           LEFT OUTER JOIN catalog_returns ON cr_item_sk = cs_item_sk AND cr_order_number = cs_order_number
           WHERE d1.d_month_seq = d2.d_month_seq AND inv_quantity_on_hand < cs_quantity * 20 AND d3.d_date > d1.d_date + 5 AND hd_buy_potential IN ('>10000', 'Unknown')
           GROUP BY i_item_desc, w_warehouse_name, d1.d_week_seq ORDER BY 6 DESC, 1, 2, 3 LIMIT 100""",
    73: """SELECT c_last_name, c_first_name, c_salutation, c_preferred_cust_flag, ss_ticket_number, cnt FROM (
             SELECT ss_ticket_number, ss_customer_sk, count(*) AS cnt FROM store_sales, date_dim, store, household_demographics WHERE ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk
               AND ss_hdemo_sk = hd_demo_sk AND d_dom <= 20 AND hd_buy_potential IN ('>10000', 'Unknown') AND hd_vehicle_count > 0
               AND CASE WHEN hd_vehicle_count > 0 THEN hd_dep_count::numeric / hd_vehicle_count END > 1 AND s_county IN ('Rush County', 'Ziebach County')
             GROUP BY ss_ticket_number, ss_customer_sk) dj, customer WHERE ss_customer_sk = c_customer_sk AND cnt BETWEEN 1 AND 5 ORDER BY cnt DESC, 1, 2, 3, 4, 5""",
    74: f"""WITH year_total AS ({YEARS.replace('sum(', 'max(')})
           SELECT a.customer_id, a.first_name FROM year_total a, year_total b WHERE a.customer_id = b.customer_id AND a.sale_type = 's' AND b.sale_type = 'w' AND a.dyear = b.dyear
             AND a.year_total > b.year_total GROUP BY 1, 2 HAVING count(*) > 1""",
    75: """WITH all_sales AS (SELECT d_year, i_brand_id, sum(cnt) AS cnt, sum(amt) AS amt FROM (
             SELECT d_year, i_brand_id, cs_quantity - coalesce(cr_return_quantity, 0) AS cnt, cs_ext_sales_price - coalesce(cr_return_amount, 0.0) AS amt FROM catalog_sales JOIN item ON i_item_sk = cs_item_sk
               JOIN date_dim ON d_date_sk = cs_sold_date_sk LEFT JOIN catalog_returns ON cs_order_number = cr_order_number AND cs_item_sk = cr_item_sk
             UNION SELECT d_year, i_brand_id, ss_quantity - coalesce(sr_return_quantity, 0), ss_ext_sales_price - coalesce(sr_return_amt, 0.0) FROM store_sales JOIN item ON i_item_sk = ss_item_sk
               JOIN date_dim ON d_date_sk = ss_sold_date_sk LEFT JOIN store_returns ON ss_ticket_number = sr_ticket_number AND ss_item_sk = sr_item_sk) sd GROUP BY 1, 2)
           SELECT p.d_year, c.d_year, c.i_brand_id, p.cnt, c.cnt, c.cnt - p.cnt, c.amt - p.amt FROM all_sales c, all_sales p WHERE c.i_brand_id = p.i_brand_id AND c.d_year = 2000 AND p.d_year = 1999
             AND c.cnt::numeric(17,2) / p.cnt::numeric(17,2) < 1.5""",
    76: """SELECT channel, col_name, d_year, d_qoy, i_category, count(*), sum(p) FROM (SELECT 'store' AS channel, 'ss_store_sk' AS col_name, d_year, d_qoy, i_category, ss_ext_sales_price AS p
             FROM store_sales, item, date_dim WHERE ss_store_sk IS NULL AND ss_sold_date_sk = d_date_sk AND ss_item_sk = i_item_sk
             UNION ALL SELECT 'web', 'ws_ship_customer_sk', d_year, d_qoy, i_category, ws_ext_sales_price FROM web_sales, item, date_dim
             WHERE ws_ship_customer_sk IS NULL AND ws_sold_date_sk = d_date_sk AND ws_item_sk = i_item_sk) foo GROUP BY 1, 2, 3, 4, 5""",
    77: """WITH ss AS (SELECT s_store_sk, sum(ss_ext_sales_price) AS sales, sum(ss_net_profit) AS profit FROM store_sales, store WHERE ss_store_sk = s_store_sk GROUP BY 1),
           sr AS (SELECT s_store_sk, sum(sr_return_amt) AS returns, sum(sr_net_loss) AS loss FROM store_returns, store WHERE sr_store_sk = s_store_sk GROUP BY 1),
           cs AS (SELECT cs_call_center_sk, sum(cs_ext_sales_price) AS sales, sum(cs_net_profit) AS profit FROM catalog_sales GROUP BY 1), cr AS (SELECT sum(cr_return_amount) AS returns, sum(cr_net_loss) AS loss FROM catalog_returns)
           SELECT channel, id, sum(sales), sum(returns), sum(profit) FROM (SELECT 'store channel' AS channel, ss.s_store_sk AS id, sales, coalesce(returns, 0) AS returns, profit - coalesce(loss, 0) AS profit
             FROM ss LEFT JOIN sr ON ss.s_store_sk = sr.s_store_sk UNION ALL SELECT 'catalog channel', cs_call_center_sk, sales, returns, profit - loss FROM cs, cr) x GROUP BY ROLLUP (channel, id)""",
    78: """WITH ws AS (SELECT d_year AS y, ws_item_sk AS i, ws_bill_customer_sk AS c, sum(ws_quantity) AS q FROM web_sales LEFT JOIN web_returns ON wr_order_number = ws_order_number AND ws_item_sk = wr_item_sk
             JOIN date_dim ON ws_sold_date_sk = d_date_sk WHERE wr_order_number IS NULL GROUP BY 1, 2, 3),
           ss AS (SELECT d_year AS y, ss_item_sk AS i, ss_customer_sk AS c, sum(ss_quantity) AS q FROM store_sales LEFT JOIN store_returns ON sr_ticket_number = ss_ticket_number AND ss_item_sk = sr_item_sk
             JOIN date_dim ON ss_sold_date_sk = d_date_sk WHERE sr_ticket_number IS NULL GROUP BY 1, 2, 3)
           SELECT ss.y, ss.i, ss.c, round(ss.q / coalesce(ws.q, 1)::numeric, 2), coalesce(ws.q, 0) FROM ss LEFT JOIN ws ON ws.y = ss.y AND ws.i = ss.i AND ws.c = ss.c WHERE ss.y = 2000 AND coalesce(ws.q, 1) > 0""",
    79: """SELECT c_last_name, c_first_name, substr(s_city, 1, 30), ss_ticket_number, amt, profit FROM (
             SELECT ss_ticket_number, ss_customer_sk, s_city, sum(ss_coupon_amt) AS amt, sum(ss_net_profit) AS profit FROM store_sales, date_dim, store, household_demographics
             WHERE ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk AND ss_hdemo_sk = hd_demo_sk AND (hd_dep_count = 6 OR hd_vehicle_count > 2) AND d_dow IN (1, 3, 5)
               AND s_number_employees BETWEEN 200 AND 295 GROUP BY ss_ticket_number, ss_customer_sk, ss_addr_sk, s_city) ms, customer
           WHERE ss_customer_sk = c_customer_sk ORDER BY 1, 2, 3, 6, 4, 5 LIMIT 100""",
    80: f"""WITH {RETURNED.format('ss', 'sr', 'store_sales', 'store_returns', 'return_amt', 'ssr', 's_store_id', 'ticket_number', 'store', 'ss_store_sk = s_store_sk')},
            {RETURNED.format('cs', 'cr', 'catalog_sales', 'catalog_returns', 'return_amount', 'csr', 'cp_catalog_page_id', 'order_number', 'catalog_page', 'cs_catalog_page_sk = cp_catalog_page_sk')},
            {RETURNED.format('ws', 'wr', 'web_sales', 'web_returns', 'return_amt', 'wsr', 'web_site_id', 'order_number', 'web_site', 'ws_web_site_sk = web_site_sk')}
            SELECT channel, id, sum(sales), sum(returns), sum(profit) FROM (SELECT 'store channel' AS channel, 'store' || id AS id, sales, returns, profit FROM ssr
              UNION ALL SELECT 'catalog channel', 'catalog_page' || id, sales, returns, profit FROM csr UNION ALL SELECT 'web channel', 'web_site' || id, sales, returns, profit FROM wsr) x
            GROUP BY ROLLUP (channel, id) ORDER BY channel, id LIMIT 100""",
    81: """WITH ctr AS (SELECT cr_returning_customer_sk AS cust, ca_state AS state, sum(cr_return_amt_inc_tax) AS total FROM catalog_returns, customer_address WHERE cr_returning_addr_sk = ca_address_sk GROUP BY 1, 2)
           SELECT c_customer_id, c_last_name, total FROM ctr c1, customer WHERE c1.total > (SELECT avg(total) * 1.2 FROM ctr c2 WHERE c1.state = c2.state) AND c1.cust = c_customer_sk""",
    82: """SELECT i_item_id, i_item_desc, i_current_price FROM item, inventory, date_dim, store_sales WHERE i_current_price BETWEEN 30 AND 160 AND inv_item_sk = i_item_sk
             AND d_date_sk = inv_date_sk AND d_date BETWEEN '2000-05-25' AND '2000-09-24' AND i_manufact_id <= 4 AND inv_quantity_on_hand BETWEEN 100 AND 500 AND ss_item_sk = i_item_sk
           GROUP BY i_item_id, i_item_desc, i_current_price ORDER BY i_item_id LIMIT 100""",
    83: " INTERSECT ALL ".join(f"SELECT i_item_id FROM {t}, item, date_dim WHERE {p}_item_sk = i_item_sk AND {p}_returned_date_sk = d_date_sk AND d_year = 2000"
                               for p, t in (("sr", "store_returns"), ("cr", "catalog_returns"), ("wr", "web_returns"))),
    84: """SELECT c_customer_id, coalesce(c_last_name, '') || ', ' || coalesce(c_first_name, '') AS name FROM customer, customer_address, customer_demographics, household_demographics, income_band, store_returns
           WHERE ca_city = 'Midway' AND c_current_addr_sk = ca_address_sk AND ib_lower_bound >= 20000 AND ib_upper_bound <= 80000 AND ib_income_band_sk = hd_income_band_sk AND cd_demo_sk = c_current_cdemo_sk
             AND hd_demo_sk = c_current_hdemo_sk AND sr_cdemo_sk = cd_demo_sk""",
    85: """SELECT substr(r_reason_desc, 1, 20), avg(ws_quantity), avg(wr_refunded_cash), avg(wr_fee) FROM web_sales, web_returns, web_page, customer_demographics cd1, customer_demographics cd2, customer_address, reason
           WHERE ws_web_page_sk = wp_web_page_sk AND ws_item_sk = wr_item_sk AND ws_order_number = wr_order_number AND cd1.cd_demo_sk = wr_refunded_cdemo_sk AND cd2.cd_demo_sk = wr_returning_cdemo_sk
             AND ca_address_sk = wr_refunded_addr_sk AND r_reason_sk = wr_reason_sk AND (cd1.cd_marital_status = cd2.cd_marital_status OR ws_sales_price BETWEEN 50 AND 150) GROUP BY r_reason_desc""",
    86: """SELECT sum(ws_net_paid) AS total, i_category, i_class, grouping(i_category) + grouping(i_class) AS l,
             rank() OVER (PARTITION BY grouping(i_category) + grouping(i_class), CASE WHEN grouping(i_class) = 0 THEN i_category END ORDER BY sum(ws_net_paid) DESC)
           FROM web_sales, date_dim, item WHERE d_month_seq BETWEEN 1200 AND 1211 AND d_date_sk = ws_sold_date_sk AND i_item_sk = ws_item_sk GROUP BY ROLLUP (i_category, i_class)""",
    87: """SELECT count(*) FROM ((SELECT DISTINCT c_last_name, c_first_name, d_date FROM store_sales, date_dim, customer WHERE ss_sold_date_sk = d_date_sk AND ss_customer_sk = c_customer_sk)
             EXCEPT (SELECT DISTINCT c_last_name, c_first_name, d_date FROM catalog_sales, date_dim, customer WHERE cs_sold_date_sk = d_date_sk AND cs_bill_customer_sk = c_customer_sk)
             EXCEPT (SELECT DISTINCT c_last_name, c_first_name, d_date FROM web_sales, date_dim, customer WHERE ws_sold_date_sk = d_date_sk AND ws_bill_customer_sk = c_customer_sk)) cool""",
    88: "SELECT * FROM " + ", ".join(f"""(SELECT count(*) AS h{h} FROM store_sales, household_demographics, time_dim, store WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk
             AND t_hour = {h} AND t_minute >= 30 AND ((hd_dep_count = 4 AND hd_vehicle_count <= 6) OR (hd_dep_count = 2 AND hd_vehicle_count <= 4)) AND s_store_name = 'ese') s{h}""" for h in (8, 9, 10, 11)),
    89: """SELECT * FROM (SELECT i_category, i_class, i_brand, s_store_name, d_moy, sum(ss_sales_price) AS sum_sales, avg(sum(ss_sales_price)) OVER (PARTITION BY i_category, i_brand, s_store_name) AS avg_monthly
             FROM item, store_sales, date_dim, store WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk AND d_year = 2000 GROUP BY 1, 2, 3, 4, 5) tmp1
           WHERE CASE WHEN avg_monthly <> 0 THEN abs(sum_sales - avg_monthly) / avg_monthly END > 0.1""",
    90: """SELECT amc::numeric(15,4) / nullif(pmc, 0)::numeric(15,4) FROM (SELECT count(*) AS amc FROM web_sales, time_dim, web_page WHERE ws_sold_time_sk = t_time_sk AND ws_web_page_sk = wp_web_page_sk
             AND t_hour BETWEEN 8 AND 11) a, (SELECT count(*) AS pmc FROM web_sales, time_dim, web_page WHERE ws_sold_time_sk = t_time_sk AND ws_web_page_sk = wp_web_page_sk AND t_hour BETWEEN 15 AND 18) p""",
    91: """SELECT cc_call_center_id, cc_name, cc_manager, sum(cr_net_loss) FROM call_center, catalog_returns, date_dim, customer, customer_address, customer_demographics, household_demographics
           WHERE cr_call_center_sk = cc_call_center_sk AND cr_returned_date_sk = d_date_sk AND cr_returning_customer_sk = c_customer_sk AND cd_demo_sk = c_current_cdemo_sk
             AND hd_demo_sk = c_current_hdemo_sk AND ca_address_sk = c_current_addr_sk AND d_year >= 1999
             AND (cd_marital_status = 'M' AND cd_education_status = 'Unknown' OR cd_marital_status = 'W' AND cd_education_status IN ('4 yr Degree', 'College')) AND ca_gmt_offset = -5
           GROUP BY cc_call_center_id, cc_name, cc_manager, cd_marital_status, cd_education_status ORDER BY 4 DESC""",
    92: """SELECT sum(ws_ext_discount_amt) FROM web_sales, item, date_dim WHERE i_manufact_id < 5 AND i_item_sk = ws_item_sk AND d_date_sk = ws_sold_date_sk
             AND ws_ext_discount_amt > (SELECT 1.3 * avg(ws_ext_discount_amt) FROM web_sales, date_dim WHERE ws_item_sk = i_item_sk AND d_date_sk = ws_sold_date_sk)""",
    93: """SELECT ss_customer_sk, sum(act_sales) FROM (SELECT ss_customer_sk, CASE WHEN sr_return_quantity IS NOT NULL THEN (ss_quantity - sr_return_quantity) * ss_sales_price ELSE ss_quantity * ss_sales_price END AS act_sales
             FROM store_sales LEFT OUTER JOIN store_returns ON sr_item_sk = ss_item_sk AND sr_ticket_number = ss_ticket_number, reason WHERE sr_reason_sk = r_reason_sk AND r_reason_desc = 'reason_desc2') t
           GROUP BY ss_customer_sk""",
    94: """SELECT count(DISTINCT ws_order_number), sum(ws_ext_ship_cost), sum(ws_net_profit) FROM web_sales ws1, date_dim, customer_address, web_site
           WHERE d_date BETWEEN '1999-02-01' AND '2000-12-01' AND ws1.ws_ship_date_sk = d_date_sk AND ws1.ws_ship_addr_sk = ca_address_sk AND ca_state IN ('TN', 'TX', 'OH')
             AND ws1.ws_web_site_sk = web_site_sk AND EXISTS (SELECT * FROM web_sales ws2 WHERE ws1.ws_order_number = ws2.ws_order_number AND ws1.ws_warehouse_sk <> ws2.ws_warehouse_sk)
             AND NOT EXISTS (SELECT * FROM web_returns wr1 WHERE ws1.ws_order_number = wr1.wr_order_number) LIMIT 100""",
    95: """WITH ws_wh AS (SELECT ws1.ws_order_number FROM web_sales ws1, web_sales ws2 WHERE ws1.ws_order_number = ws2.ws_order_number AND ws1.ws_warehouse_sk <> ws2.ws_warehouse_sk)
           SELECT count(DISTINCT ws_order_number), sum(ws_ext_ship_cost), sum(ws_net_profit) FROM web_sales ws1, customer_address, web_site WHERE ws1.ws_ship_addr_sk = ca_address_sk AND ca_state IN ('TN', 'GA', 'TX')
             AND ws1.ws_web_site_sk = web_site_sk AND ws1.ws_order_number IN (SELECT ws_order_number FROM ws_wh)
             AND ws1.ws_order_number IN (SELECT wr_order_number FROM web_returns, ws_wh WHERE wr_order_number = ws_wh.ws_order_number)""",
    96: """SELECT count(*) FROM store_sales, household_demographics, time_dim, store WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk
             AND t_hour BETWEEN 8 AND 20 AND t_minute >= 30 AND hd_dep_count <= 5 AND s_store_name = 'ese' LIMIT 100""",
    97: """WITH ssci AS (SELECT ss_customer_sk AS c, ss_item_sk AS i FROM store_sales, date_dim WHERE ss_sold_date_sk = d_date_sk GROUP BY 1, 2),
           csci AS (SELECT cs_bill_customer_sk AS c, cs_item_sk AS i FROM catalog_sales, date_dim WHERE cs_sold_date_sk = d_date_sk GROUP BY 1, 2)
           SELECT sum(CASE WHEN ssci.c IS NOT NULL AND csci.c IS NULL THEN 1 ELSE 0 END), sum(CASE WHEN ssci.c IS NULL AND csci.c IS NOT NULL THEN 1 ELSE 0 END),
             sum(CASE WHEN ssci.c IS NOT NULL AND csci.c IS NOT NULL THEN 1 ELSE 0 END) FROM ssci FULL OUTER JOIN csci ON ssci.c = csci.c AND ssci.i = csci.i""",
    98: """SELECT i_item_id, i_category, i_class, sum(ss_ext_sales_price), sum(ss_ext_sales_price) * 100 / sum(sum(ss_ext_sales_price)) OVER (PARTITION BY i_class)
           FROM store_sales, item, date_dim WHERE ss_item_sk = i_item_sk AND i_category IN ('Sports', 'Books', 'Home') AND ss_sold_date_sk = d_date_sk AND d_year = 1999 GROUP BY 1, 2, 3""",
    99: """SELECT substr(w_warehouse_name, 1, 20), sm_type, cc_name, sum(CASE WHEN cs_ship_date_sk - cs_sold_date_sk > 30 AND cs_ship_date_sk - cs_sold_date_sk <= 60 THEN 1 ELSE 0 END)
           FROM catalog_sales, warehouse, ship_mode, call_center WHERE cs_warehouse_sk = w_warehouse_sk AND cs_ship_mode_sk = sm_ship_mode_sk AND cs_call_center_sk = cc_call_center_sk GROUP BY 1, 2, 3""",
}
