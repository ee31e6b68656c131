def main():
    from late_server import serve

    serve()


if __name__ == "__main__":
    main()
